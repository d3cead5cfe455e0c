"""Converts grammars in GBNF, llama.cpp's notation, to llguidance's Lark."""
