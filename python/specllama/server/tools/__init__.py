"""Reads the tools of a request, and which of them may or must be called."""
