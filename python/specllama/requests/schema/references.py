"""The references of a JSON schema, followed to their targets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from specllama.errors import ArgumentError


class References:
    """The references within a JSON schema, such as {"$ref": "#/$defs/name"}.

    Args:
        schema: The whole schema.
    """

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._ending: set[str] = set()
        self._followed: list[str] = []

    def target(self, reference: Any) -> Any:
        """Return what a reference leads to. Raises ArgumentError if it leads nowhere."""
        if not isinstance(reference, str) or not f"{reference}/".startswith("#/"):
            raise ArgumentError(
                f"its $ref is {json.dumps(reference):.80}, which is nowhere in the schema (#/...)"
            )
        found = self._schema
        for name in reference.split("/")[1:]:
            try:
                found = found[int(name)] if isinstance(found, list) else _member(found, name)
            except (KeyError, ValueError, IndexError):
                raise ArgumentError(f"its $ref {reference:.80} is nowhere in the schema") from None
        return found

    def check(self, reference: str) -> None:
        """Raise ArgumentError if a reference leads back to itself without a value in between: its
        rule would be left-recursive. The targets must have been checked to be schemas."""
        if reference in self._ending:
            return
        if reference in self._followed:
            raise ArgumentError(f"its $ref {reference:.80} leads back to itself")
        self._followed.append(reference)
        for schema in _at_once(self.target(reference)):
            if "$ref" in schema:
                self.check(schema["$ref"])
        self._followed.pop()
        self._ending.add(reference)


def _member(found: Any, name: str) -> Any:
    if not isinstance(found, dict):
        raise KeyError(name)
    return found[name if name in found else unquote(name).replace("~1", "/").replace("~0", "~")]


def _at_once(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and the alternatives or further schemas that apply to the same value."""
    if isinstance(schema, dict):
        yield schema
        for key in ("anyOf", "oneOf", "allOf"):
            for one in schema.get(key, []):
                yield from _at_once(one)
