"""JSON schemas in the form that llguidance supports."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from specllama.requests.lark import MOST_TOGETHER
from specllama.requests.schema.closed import Listed
from specllama.requests.schema.disjoint import TYPES
from specllama.requests.schema.evaluated import UNEVALUATED, with_evaluated
from specllama.requests.schema.formats import followable
from specllama.requests.schema.keywords import with_known_keywords
from specllama.requests.schema.objects import with_counted_properties, with_named_properties
from specllama.requests.schema.reader import Reader
from specllama.requests.schema.repaired import SchemaError
from specllama.requests.schema.together import split

_MOST_PROPERTIES = 1024
"""Most properties of an object: llguidance's time grows with their square."""

_LEVELS = 8
"""Levels of nested values before a definition is used: llguidance does not read deep nesting."""


class Prepared:
    """A JSON schema in the form that llguidance supports.

    Args:
        schema: The schema, a JSON value.

    Attributes:
        schema: The result, with definitions of its own.
        left: Keywords, as JSON, that restrict values but are not enforced.
        remarks: Clauses about harmless differences from the schema.
        has_other_names: Whether an object may have properties that its schema does not list.

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
        """Return the supported form of the schema of a value, or a reference to it."""
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
        """Return a reference to the definition of a schema. There is one definition for each pair
        of a target and the keywords next to the reference."""
        key = (id(target), json.dumps(beside, sort_keys=True))
        if key not in self._names:
            self._names[key] = f"{len(self._names)}"
            self._named.append(target)
            self._waiting.append((self._names[key], schema))
        return {"$ref": f"#/$defs/{self._names[key]}"}

    def _whole(self, schema: Any) -> Any:
        listed = Listed(schema, self._reader)
        self.has_other_names |= listed.allows_others
        return self._visit(listed.closed, 0, alone=not listed.is_object)

    def _visit(self, schema: Any, depth: int, *, alone: bool = False) -> Any:
        """Return the supported form of a schema that may apply to a value together with others.

        Args:
            schema: The schema.
            depth: Number of schemas for the same value around it.
            alone: Whether no other schema applies besides its alternatives, so that each describes
                its objects completely.
        """
        given = self._reader.read(schema, depth)
        if isinstance(given, bool):
            return given
        if given.keys() & UNEVALUATED:
            return self._visit(with_evaluated(given, self._reader), depth + 1)
        own, others = split(schema, given, self._reader)
        own, more = self._counted(with_known_keywords(own, self._reader))
        others += more
        forms: list[Any] = [{key: self._form(key, one, depth, alone) for key, one in own.items()}]
        for form in (self._visit(one, depth + 1, alone=alone) for one in others):
            is_list = isinstance(form, dict) and form.keys() == {"allOf"}
            forms += form["allOf"] if is_list else [form]
        forms = [one for one in forms if one is not True and one != {}]
        if sum(isinstance(one, dict) and "pattern" in one for one in forms) > MOST_TOGETHER:
            raise SchemaError(f"more than {MOST_TOGETHER} patterns for the same text")
        if len(forms) > 1:
            return {"allOf": forms}
        return forms[0] if forms else True

    def _counted(self, own: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """Return a schema with the names and numbers of properties expressed by other keywords, and
        further schemas that must also hold."""
        others: list[Any] = []
        if "propertyNames" in own:
            names = self._reader.followed(own.pop("propertyNames"))
            own, others = with_named_properties(own, names, self._reader)
        if len({*own.get("properties", ()), *own.get("required", ())}) > _MOST_PROPERTIES:
            raise SchemaError(f"more than {_MOST_PROPERTIES} properties of an object")
        if own.keys() & {"minProperties", "maxProperties"}:
            own, choices = with_counted_properties(own, self._reader)
            if choices:
                others.append({"anyOf": [*choices, *_of_other_types(own)]})
        return own, others

    def _form(self, key: str, value: Any, depth: int, alone: bool) -> Any:
        """Return the value of a keyword, with the schemas in it in the supported form."""
        if key in ("items", "additionalProperties"):
            return self._value(value)
        if key in ("properties", "patternProperties"):
            return {name: self._value(one) for name, one in value.items()}
        if key == "prefixItems":
            return [self._value(one) for one in value]
        if key == "anyOf":
            schemas = self._followable(value)
            return [self._value(one) if alone else self._visit(one, depth + 1) for one in schemas]
        return value

    def _followable(self, schemas: list[Any]) -> list[Any]:
        """Return alternatives without texts whose pattern is not supported, if another alternative
        is left: pydantic's decimals may also be numbers."""
        odd = [_odd_pattern(self._reader.followed(one)) for one in schemas]
        kept = [one for one, pattern in zip(schemas, odd, strict=True) if pattern is None]
        if len(kept) == len(schemas) or all(_is_null(self._reader.followed(one)) for one in kept):
            return schemas
        for pattern in filter(None, odd):
            self._reader.remark(f"texts with the pattern {pattern!r:.80} are not generated")
        return kept


def _odd_pattern(schema: Any) -> str | None:
    """Return the pattern of a text if llguidance does not support it."""
    if isinstance(schema, bool) or schema.get("type") != ["string"] or "pattern" not in schema:
        return None
    return None if followable(schema["pattern"]) is not None else schema["pattern"]


def _is_null(schema: Any) -> bool:
    return schema is False or (schema is not True and schema.get("type") == ["null"])


def _of_other_types(schema: Mapping[str, Any]) -> Iterable[Any]:
    others = [one for one in schema.get("type", TYPES) if one != "object"]
    return [{"type": others}] if others else []
