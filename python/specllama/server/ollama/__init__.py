"""Ollama's API: translates its fields to those of the other APIs, and formats its answers."""
