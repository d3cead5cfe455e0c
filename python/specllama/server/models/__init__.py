"""Several models in one server: each is served by a process of its own, and this one forwards."""
