"""Random JSON schemas; some allow nothing, and some are only partly enforced."""

from __future__ import annotations

import random
from typing import Any

_NAMES = ["a", "b", "c", "kind", "id", "na me", "\u540d", "$x", 'q"', "long_name_of_a_property"]
_NUMBERS: list[Any] = [0, 1, 2, 3, 5, -1, -7, 1.5, 0.1, 2.0, 100, 1e3, -0.25, 10**6]
_CONSTANTS: list[Any] = [
    None, True, False, 0, 1, -3, 1.5, 2.0, "", "a", "ab", "\n", "\u00e9", [], [1, "a"], {"a": 1},
    {"a": {"b": []}},
]  # fmt: skip
_PATTERNS = ["^a", "b$", "^[a-c]*$", "x|y", r"^\d{2,4}$", "^(a|bc)+$", r"\s", "^.{3}$", "(?=a)"]
_FORMATS = ["date", "uuid", "email", "ipv4", "foo", "time", "date-time", "uri"]
_TYPES = ["string", "number", "integer", "array", "object", "null", "boolean"]
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def random_schema(seed: int) -> dict[str, Any]:
    """Return a schema with two definitions, the same for the same seed."""
    drawer = _Drawer(seed)
    whole: Any = True
    while whole is True:
        whole = drawer.schema(4)
    return {**whole, "$defs": {"x": drawer.schema(2), "y": drawer.schema(2)}}


class _Drawer:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def maybe(self, chance: float) -> bool:
        return self.rng.random() < chance

    def some(self, values: list[Any], most: int, least: int = 1) -> list[Any]:
        return [self.rng.choice(values) for _ in range(self.rng.randint(least, most))]

    def schemas(self, depth: int, most: int = 3) -> list[Any]:
        return [self.schema(depth) for _ in range(self.rng.randint(1, most))]

    def schema(self, depth: int) -> Any:
        if depth <= 0 or self.maybe(0.1):
            return self.rng.choice([
                {}, True, {"type": self.rng.choice(_TYPES)}, {"const": self.rng.choice(_CONSTANTS)},
                {"enum": self.some(_CONSTANTS, 4)},
                {"$ref": self.rng.choice(["#/$defs/x", "#/$defs/y", "#"])},
            ])  # fmt: skip
        kinds = self.rng.sample(_TYPES, self.rng.choice([1, 1, 1, 2, 3]))
        found: dict[str, Any] = {}
        if self.maybe(0.85):
            found["type"] = kinds if len(kinds) > 1 else kinds[0]
        for kind in kinds:
            if kind == "string":
                found |= self.text()
            elif kind in ("number", "integer"):
                found |= {key: self.rng.choice(_NUMBERS) for key in _BOUNDS if self.maybe(0.25)}
                found |= (
                    {"multipleOf": self.rng.choice([1, 2, 0.5, 5.0])} if self.maybe(0.15) else {}
                )
            elif kind in ("array", "object"):
                found |= self.array(depth - 1) if kind == "array" else self.object(depth - 1)
        found |= self.others(depth)
        keys = list(found)
        self.rng.shuffle(keys)
        return {key: found[key] for key in keys}

    def text(self) -> dict[str, Any]:
        possible = {
            "minLength": (0.4, self.rng.randint(0, 4)),
            "maxLength": (0.4, self.rng.randint(0, 9)),
            "pattern": (0.3, self.rng.choice(_PATTERNS)),
            "format": (0.2, self.rng.choice(_FORMATS)),
        }
        return {key: value for key, (chance, value) in possible.items() if self.maybe(chance)}

    def array(self, depth: int) -> dict[str, Any]:
        possible = {
            "items": (0.7, self.schema(depth)),
            "prefixItems": (0.3, self.schemas(depth)),
            "minItems": (0.3, self.rng.randint(0, 3)),
            "maxItems": (0.3, self.rng.randint(0, 4)),
            "uniqueItems": (0.1, True),
            "contains": (0.1, self.schema(depth)),
            "unevaluatedItems": (0.05, False),
        }
        return {key: value for key, (chance, value) in possible.items() if self.maybe(chance)}

    def object(self, depth: int) -> dict[str, Any]:
        names = [{"enum": ["a", "b", "z"]}, {"pattern": "^[a-z]+$"}, {"maxLength": 3}]
        patterns = ["^a", "b$", "^x_", "[0-9]"]
        possible = {
            "properties": (0.8, {one: self.schema(depth) for one in self.some(_NAMES, 4, 0)}),
            "required": (0.5, list(dict.fromkeys(self.some(_NAMES, 2)))),
            "additionalProperties": (0.3, self.rng.choice([True, False, self.schema(depth)])),
            "patternProperties": (
                0.15,
                {one: self.schema(depth) for one in self.some(patterns, 2)},
            ),
            "propertyNames": (0.1, self.rng.choice(names)),
            "minProperties": (0.1, self.rng.randint(0, 3)),
            "maxProperties": (0.1, self.rng.randint(0, 3)),
            "unevaluatedProperties": (0.07, False),
            "dependentRequired": (0.07, {self.rng.choice(_NAMES): self.some(_NAMES, 1)}),
        }
        return {key: value for key, (chance, value) in possible.items() if self.maybe(chance)}

    def others(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.maybe(0.15):
            key = self.rng.choice(["anyOf", "oneOf", "allOf", "anyOf"])
            found[key] = self.schemas(depth - 1)
        if self.maybe(0.05):
            found["$ref"] = "#/$defs/x"
        if self.maybe(0.04):
            found["not"] = self.schema(depth - 2)
        if self.maybe(0.03):
            found |= {"if": self.schema(depth - 2), "then": self.schema(depth - 1)}
        if self.maybe(0.05):
            found["enum"] = self.some(_CONSTANTS, 3)
        return found
