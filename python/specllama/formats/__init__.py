"""Saved states, corpora, traces and the trace page. Imports no other folder."""
