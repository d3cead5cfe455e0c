"""A conversation in the terminal: reads input, shows answers, executes commands."""
