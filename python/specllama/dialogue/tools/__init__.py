"""Tools, and the formats in which models write calls."""
