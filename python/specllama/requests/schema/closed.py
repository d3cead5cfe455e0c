"""Objects without properties other than those that their schema lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specllama.requests.schema.reader import Reader

_SAYS_OTHERS = frozenset({
    "additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames",
})  # fmt: skip
_IN_PLACE = frozenset({
    "$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies",
})  # fmt: skip
_DEEPEST = 16


class Listed:
    """The properties of objects by a schema and all schemas that apply to the same value.

    Args:
        schema: A schema.
        reader: The reader of the whole schema.

    Attributes:
        is_object: Whether the type includes object.
        names: The listed names; None: the schema has no `properties`.
        says_others: Whether the schema defines which other properties are allowed.
        allows_others: Whether properties other than the listed ones are allowed.
    """

    def __init__(self, schema: Any, reader: Reader) -> None:
        self.is_object = False
        self.says_others = self._forbids = False
        self.names: dict[str, None] | None = None
        self._required: dict[str, None] = {}
        self._schema = schema
        self._reader = reader
        self._enter(schema, 0, sure=True)

    @property
    def _is_closed(self) -> bool:
        return self.is_object and not self.says_others and self.names is not None

    @property
    def closed(self) -> Any:
        """The schema, closed to other properties unless it defines which are allowed."""
        if not self._is_closed:
            return self._schema
        names = {**(self.names or {}), **self._required}
        closing = {"properties": dict.fromkeys(names, True), "additionalProperties": False}
        if self._schema.keys() & _IN_PLACE or not isinstance(self._schema["properties"], Mapping):
            return {"allOf": [self._schema, closing]}
        own = {name: self._schema["properties"].get(name, True) for name in names}
        return {**self._schema, **closing, "properties": own}

    @property
    def allows_others(self) -> bool:
        return bool(self.names) and not self._is_closed and not self._forbids

    def _enter(self, schema: Any, depth: int, *, sure: bool) -> None:
        given = self._reader.read(schema)
        if isinstance(given, bool):
            return
        self.is_object |= sure and "object" in given.get("type", ())
        self.says_others |= bool(given.keys() & _SAYS_OTHERS) or depth > _DEEPEST
        self._forbids |= sure and given.get("additionalProperties") is False
        if "properties" in given:
            self.names = {**(self.names or {}), **dict.fromkeys(given["properties"])}
        self._required |= dict.fromkeys(given.get("required", ()))
        self.says_others |= given.get("minProperties", 0) > len(given.get("properties", ()))
        if depth > _DEEPEST:
            return
        if "$ref" in given:
            self._enter(self._reader.target(schema), depth + 1, sure=sure)
        for one in given.get("allOf", ()):
            self._enter(one, depth + 1, sure=sure)
        for one in _perhaps(given):
            self._enter(one, depth + 1, sure=False)


def _perhaps(schema: Mapping[str, Any]) -> Iterator[Any]:
    for key in ("anyOf", "oneOf"):
        yield from schema.get(key, ())
    for key in ("if", "then", "else"):
        if key in schema:
            yield schema[key]
    for key in ("dependentSchemas", "dependencies"):
        yield from (one for one in schema.get(key, {}).values() if not isinstance(one, list))
