"""JSON schemas as llguidance follows them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from specllama.requests.schema.asked import can_follow
from specllama.requests.schema.closed import Listed
from specllama.requests.schema.evaluated import UNEVALUATED, with_evaluated
from specllama.requests.schema.formats import followable, formatted
from specllama.requests.schema.negated import TYPES
from specllama.requests.schema.objects import with_counted_properties, with_named_properties
from specllama.requests.schema.reader import Reader
from specllama.requests.schema.repaired import SchemaError
from specllama.requests.schema.together import split

_MOST_PROPERTIES = 4096
"""Properties of an object: the time that llguidance takes grows with their square."""

_DEEPEST = 48
"""Schemas for the same value within each other."""

_LEVELS = 8
"""Values within values before a definition begins: llguidance reads no deep nesting."""

_KEPT = frozenset({
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
    "minItems", "maxItems", "required", "minProperties", "maxProperties",
})  # fmt: skip
"""Keywords that are passed on as they are."""


class Prepared:
    """A JSON schema in the form that llguidance follows.

    Args:
        schema: The schema, a JSON value.

    Attributes:
        schema: The result, with definitions of its own.
        left: What restricts values but is left to the model, each as "keyword" or "keyword value".
        remarks: Clauses about what is checked differently, and harms nobody.
        has_other_names: Whether an object may have properties besides those that it lists.

    Raises:
        SchemaError: It cannot be read, or is too large.
    """

    def __init__(self, schema: Any) -> None:
        self._reader = Reader(schema)
        self._definitions: dict[str, Any] = {}
        self._names: dict[tuple[int, str], str] = {}
        self._named: list[Any] = []  # kept, so that no id() is used twice
        self._waiting: list[tuple[str, Any]] = []
        self._level = 0
        self.has_other_names = False
        self.schema = self._value(schema)
        while self._waiting:
            name, target = self._waiting.pop()
            self._definitions[name] = self._whole(target)
        if self._definitions:
            self.schema = {**self.schema, "$defs": self._definitions}
        self.left = list(self._reader.left)
        self.remarks = list(self._reader.remarks)

    def _value(self, schema: Any) -> Any:
        """Return the form of the schema of a value, or a reference to it."""
        given = self._reader.read(schema)
        if isinstance(given, bool):
            return given
        if "$ref" in given:
            beside = {key: one for key, one in given.items() if key != "$ref"}
            return self._defined(self._reader.target(schema), beside, schema)
        if self._level == _LEVELS:
            return self._defined(schema, {}, schema)
        self._level += 1
        found = self._whole(schema)
        self._level -= 1
        return found

    def _defined(self, target: Any, beside: Mapping[str, Any], schema: Any) -> Any:
        """Return a reference to the definition of a schema: one for each target, and what holds
        beside it."""
        key = (id(target), json.dumps(beside, sort_keys=True))
        if key not in self._names:
            self._names[key] = f"{len(self._names)}"
            self._named.append(target)
            self._waiting.append((self._names[key], schema))
        return {"$ref": f"#/$defs/{self._names[key]}"}

    def _whole(self, schema: Any) -> Any:
        listed = Listed(schema, self._reader)
        self.has_other_names |= listed.allows_others
        closing = listed.closing
        whole = schema if closing is None else {"allOf": [schema, closing]}
        return self._visit(whole, 0, alone=not listed.is_object)

    def _visit(self, schema: Any, depth: int, *, alone: bool = False) -> Any:
        """Return the form of a schema that may hold for a value together with others.

        Args:
            schema: The schema.
            depth: How many schemas of the same value it is inside.
            alone: Whether its alternatives hold alone, so each says what its objects are.
        """
        if depth > _DEEPEST:
            raise SchemaError("references that lead back to themselves")
        given = self._reader.read(schema)
        if isinstance(given, bool):
            return given
        if any(key in given for key in UNEVALUATED):
            return self._visit(with_evaluated(given, self._reader), depth + 1)
        own, others = split(schema, given, self._reader)
        found: list[Any] = []
        if own:
            own, counts = self._counted(own)
            if counts:
                others = [*others, {"anyOf": [*counts, *_of_other_types(own)]}]
            found.append({
                key: form
                for name, one in own.items()
                for key, form in self._form(name, one, own, depth, alone)
            })  # fmt: skip
        found += [self._visit(one, depth + 1, alone=alone) for one in others]
        found = [one for one in found if one is not True and one != {}]
        if len(found) == 1:
            return found[0]
        return {"allOf": found} if found else True

    def _counted(self, own: dict[str, Any]) -> tuple[dict[str, Any], Sequence[Any]]:
        if len(own.get("properties", ())) > _MOST_PROPERTIES:
            raise SchemaError(f"more than {_MOST_PROPERTIES} properties of an object")
        if "propertyNames" in own:
            names = self._reader.followed(own.pop("propertyNames"))
            own = with_named_properties(own, names, self._reader.leave)
        if not own.keys() & {"minProperties", "maxProperties"}:
            return own, []
        return with_counted_properties(own, self._reader.leave)

    def _form(
        self, key: str, value: Any, own: Mapping[str, Any], depth: int, alone: bool
    ) -> Iterable[tuple[str, Any]]:
        """Return a keyword in the form that llguidance follows: none, one or several."""
        if key in _KEPT:
            return [(key, value)]
        if key == "type":
            return [(key, value[0] if len(value) == 1 else value)]
        if key in ("const", "enum"):
            return self._constants(key, value)
        if key in ("items", "additionalProperties"):
            return [(key, self._value(value))]
        if key == "prefixItems":
            return [(key, [self._value(one) for one in value])]
        if key == "properties":
            return [(key, {name: self._value(one) for name, one in value.items()})]
        if key == "patternProperties":
            return self._pattern_properties(value)
        if key == "anyOf":
            return [(key, self._alternatives(value, depth, alone))]
        if key in ("pattern", "format") and "string" in own.get("type", ["string"]):
            return self._pattern(value) if key == "pattern" else self._format(value, own)
        if key == "multipleOf" and not can_follow({"type": "number", key: value}):
            self._reader.leave(f"{key} {value!r:.40}")
        elif key == "multipleOf":
            return [(key, value)]
        if key == "contains":
            return self._contained(value, own)
        has_several = key == "uniqueItems" and own.get("maxItems", 2) > 1
        if has_several or key in ("$dynamicRef", "$recursiveRef"):
            self._reader.leave(key)
        return []

    def _constants(self, key: str, value: Any) -> Iterable[tuple[str, Any]]:
        numbers = value if key == "enum" else [value]
        large = [one for one in numbers if type(one) in (int, float) and abs(one) > 2**53]
        if not large:
            return [(key, value)]
        self._reader.leave(f"{key} {large[0]!r:.40}")
        return []

    def _alternatives(self, schemas: list[Any], depth: int, alone: bool) -> list[Any]:
        read = [self._reader.followed(one) for one in schemas]
        odd = [_pattern_of(one) for one in read]
        rest = (
            [
                one
                for one, pattern in zip(read, odd, strict=True)
                if pattern is None and one is not False and one.get("type") != ["null"]
            ]
            if any(odd)
            else []
        )
        if rest:
            for pattern in filter(None, odd):
                self._reader.remark(
                    f"an alternative is left out, as its pattern {pattern!r:.80} cannot be followed"
                )
            schemas = [one for one, pattern in zip(schemas, odd, strict=True) if pattern is None]
        if alone:
            return [self._value(one) for one in schemas]
        return [self._visit(one, depth + 1) for one in schemas]

    def _pattern(self, pattern: str) -> Iterable[tuple[str, Any]]:
        if (found := followable(pattern)) is not None:
            return [("pattern", found)]
        self._reader.leave(f"pattern {pattern!r:.80}")
        return []

    def _format(self, name: str, own: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        found = formatted(name)
        if found is None:
            self._reader.remark(f"the format {name!r:.40} is not checked")
            return []
        return [("allOf", [found])] if "pattern" in own else list(found.items())

    def _pattern_properties(self, schemas: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        patterns = {followable(pattern): one for pattern, one in schemas.items()}
        forms = {key: self._value(one) for key, one in patterns.items() if key is not None}
        key = "patternProperties"
        if len(forms) == len(schemas) and can_follow({key: dict.fromkeys(forms, True)}):
            return [(key, forms)]
        self._reader.leave(key)
        return [("additionalProperties", True)]

    def _contained(self, schema: Any, own: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        low, high = own.get("minContains", 1), own.get("maxContains")
        if self._reader.followed(schema) in (True, {}):
            found = {"minItems": max(low, own.get("minItems", 0))}
            if high is not None:
                found["maxItems"] = min(high, own.get("maxItems", high))
            return list(found.items())
        if low > 0 or high is not None:
            self._reader.leave("contains")
        return []


def _pattern_of(schema: Any) -> str | None:
    """Return the pattern of strings, if llguidance cannot follow it."""
    if isinstance(schema, bool) or schema.get("type") != ["string"] or "pattern" not in schema:
        return None
    return None if followable(schema["pattern"]) is not None else schema["pattern"]


def _of_other_types(schema: Mapping[str, Any]) -> list[Any]:
    others = [one for one in schema.get("type", TYPES) if one != "object"]
    return [{"type": others}] if others else []
