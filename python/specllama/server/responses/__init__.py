"""/v1/responses: an API in which an answer is a list of items: messages, thoughts and calls."""
