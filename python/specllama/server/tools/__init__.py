"""Calls of tools: what may be called, what a model writes to call it, and how that is read."""
