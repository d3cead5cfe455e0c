"""Connections, and the checks and the log that all requests share."""
