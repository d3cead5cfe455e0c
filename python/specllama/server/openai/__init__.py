"""Completions and chat completions of OpenAI's API."""
