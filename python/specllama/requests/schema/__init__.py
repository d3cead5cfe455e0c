"""JSON schemas as grammars: checked, made simple, and converted."""
