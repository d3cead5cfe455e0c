"""A conversation in the terminal: what is typed, what is said, and what is done about it."""
