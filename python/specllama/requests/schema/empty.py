"""What a JSON schema that nothing follows is refused by."""

from __future__ import annotations

from specllama.errors import ArgumentError


class EmptyError(ArgumentError):
    """No value follows a schema; where it stands beside others to choose from, it is left out."""
