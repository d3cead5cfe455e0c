"""Connections, and what happens to every request whatever it asks for."""
