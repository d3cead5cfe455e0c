"""`specllama serve`: the OpenAI API over HTTP, for one session.

Everything but `command` needs `pip install specllama[server]`.
"""
