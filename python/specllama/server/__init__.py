"""`specllama serve`: the APIs of OpenAI, Anthropic, Ollama and llama.cpp's server over HTTP.

It needs `pip install 'specllama[server]'`; without it, `commands.serve` exits with an error.
"""
