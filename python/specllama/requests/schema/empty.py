"""The error for a JSON schema that no value satisfies."""

from __future__ import annotations

from specllama.errors import ArgumentError


class EmptyError(ArgumentError):
    """No value satisfies a schema or a part of it. Among alternatives such a part is left out."""
