"""JSON schemas, prepared for llguidance."""
