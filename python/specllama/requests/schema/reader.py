"""Reads the parts of a JSON schema, and records the keywords that cannot be enforced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from specllama.requests.schema.references import References
from specllama.requests.schema.repaired import SchemaError, repaired

_MOST_PARTS = 20_000
"""Most schemas in a schema, with references resolved."""

_MOST_CONSTANTS = 400_000
"""Most constants in a schema, with references resolved; most schemas are read three times."""

_DEEPEST = 48
"""Most levels of nested parts that apply to the same value."""


class Reader:
    """Reads the parts of one schema.

    Args:
        schema: The whole schema.

    Attributes:
        left: Keywords, as JSON, that restrict values but cannot be expressed.
        remarks: Clauses about harmless differences from the schema.
    """

    def __init__(self, schema: Any) -> None:
        self.left: dict[str, None] = {}
        self.remarks: dict[str, None] = {}
        self._references = References(schema)
        self._n_parts = 0
        self._n_constants = 0

    def leave(self, key: str, *value: Any) -> None:
        """Record a keyword, optionally with its value, that is not enforced."""
        self.left[f'"{key}"' + "".join(f": {json.dumps(one):.80}" for one in value)] = None

    def remark(self, what: str) -> None:
        """Record a remark."""
        self.remarks[what] = None

    def read(self, schema: Any, depth: int = 0) -> Any:
        """Return a repaired part, or True or False. Raises SchemaError.

        Args:
            schema: The part.
            depth: Number of parts for the same value around it.
        """
        if depth > _DEEPEST:
            raise SchemaError(f"more than {_DEEPEST} references or allOf inside each other")
        if schema is None or isinstance(schema, bool):
            return schema is not False
        if not isinstance(schema, Mapping):
            raise SchemaError(f"{json.dumps(schema):.80} instead of a schema")
        self._n_parts += 1
        self._n_constants += len(schema["enum"]) if isinstance(schema.get("enum"), list) else 0
        if self._n_parts > _MOST_PARTS:
            raise SchemaError(f"more than {_MOST_PARTS} parts, references followed")
        if self._n_constants > _MOST_CONSTANTS:
            raise SchemaError(f"more than {_MOST_CONSTANTS} constants, references followed")
        return repaired(schema, self.leave)

    def target(self, schema: Mapping[str, Any]) -> Any:
        """Return the target of the reference in a part; True if there is none."""
        try:
            return self._references.target(schema)
        except LookupError:
            self.leave("$ref", schema["$ref"])
            return True

    def followed(self, schema: Any) -> Any:
        """Return a repaired part with its reference resolved, or True or False."""
        given = self.read(schema)
        if isinstance(given, bool) or "$ref" not in given:
            return given
        beside = {key: one for key, one in given.items() if key != "$ref"}
        target = self.target(schema)
        return self.followed(target) if not beside else {"allOf": [target, beside]}
