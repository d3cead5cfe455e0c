"""JSON schemas as grammars: they are checked, simplified and converted."""
