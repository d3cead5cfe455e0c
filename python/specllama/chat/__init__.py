"""A conversation in the terminal: reading what is typed, showing answers, executing commands."""
