"""`specllama serve`: the OpenAI API over HTTP, for one session.

It needs `pip install 'specllama[server]'`; if that is missing, `commands.serve` says so.
"""
