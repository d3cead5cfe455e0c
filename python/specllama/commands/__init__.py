"""The command `specllama`: one file per subcommand, each with `add_command`. It may import every
other folder; no folder imports it."""
