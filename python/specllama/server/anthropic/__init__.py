"""/v1/messages: Anthropic's API, in which an answer is a list of blocks."""
