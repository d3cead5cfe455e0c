"""The implementation of `specllama bench`."""
