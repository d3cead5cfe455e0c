"""Finding, downloading and loading a model; its tokenizer and chat template. Imports `formats`."""
