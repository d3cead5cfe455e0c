"""What a JSON schema that nothing follows is refused by."""

from __future__ import annotations

from specllama.errors import ArgumentError


class EmptyError(ArgumentError):
    """Nothing follows a schema, or some part of it. Beside others to choose from it is left out."""
