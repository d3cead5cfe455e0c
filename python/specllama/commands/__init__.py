"""The command `specllama`: one file per subcommand, each with `add_command`. Imports every room; no
room imports it."""
