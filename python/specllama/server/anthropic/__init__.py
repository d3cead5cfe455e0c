"""/v1/messages: the API of Anthropic's clients, in which an answer is a list of blocks."""
