"""Calls of tools: which may be called, how a model writes a call, and how that is read."""
