"""What a model is asked in a conversation, and what its answer consists of: thoughts, content and
calls of tools."""
