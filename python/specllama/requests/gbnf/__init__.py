"""Grammars in GBNF, llama.cpp's notation, turned into llguidance's Lark."""
