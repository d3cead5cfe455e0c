"""A request from its options to its end: read, handed to a thread, streamed. Imports `model` and
`formats`."""
