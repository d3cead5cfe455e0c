"""Several models in one server. Each has its own process, and the server forwards requests."""
