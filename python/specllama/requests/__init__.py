"""A request from its options to its end: it is read, handed to a thread and streamed. This folder
imports `model` and `formats`."""
