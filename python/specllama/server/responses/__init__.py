"""/v1/responses: OpenAI's API in which an answer is a list of messages, thoughts and calls."""
