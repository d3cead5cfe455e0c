"""The command `specllama`: one file per subcommand, each with `add_command`. It imports every other
folder, and none imports it."""
