"""`specllama serve`: the OpenAI API over HTTP, for one session.

It needs `pip install specllama[server]`, as `commands.serve` says where that is missing.
"""
