"""Paths of llama.cpp's server."""
