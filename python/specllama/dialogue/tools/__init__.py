"""Tools, and how models write calls of them."""
