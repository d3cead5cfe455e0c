"""What is saved and shown: saved states, corpora, traces and their page. Imports no other room."""
