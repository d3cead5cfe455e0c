"""Requests: their options, the worker thread that runs them, and their streamed results. Imports
`model` and `formats`."""
