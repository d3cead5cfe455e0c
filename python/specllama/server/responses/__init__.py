"""/v1/responses: what a model says and calls, as a list of items."""
