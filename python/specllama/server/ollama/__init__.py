"""Ollama's API: its fields, translated to those of the other APIs, and its form of answers."""
