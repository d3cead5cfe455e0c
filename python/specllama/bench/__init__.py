"""The benchmark behind `specllama bench`."""
