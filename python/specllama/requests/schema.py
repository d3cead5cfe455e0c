"""JSON schemas as grammars, by the converter of llama-cpp-python."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from llama_cpp.llama_grammar import BuiltinRule, SchemaConverter

from specllama.errors import ArgumentError
from specllama.requests.integers import integer_rule
from specllama.requests.pattern import pattern_rule, quoted

_MOST_REPEATED = 65536
"""More of anything makes no grammar that can be read: it has more bytes."""

_LENGTHS = ("minLength", "maxLength", "minItems", "maxItems")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_OBJECTS = ("properties", "$defs", "definitions", "patternProperties")
"""Where schemas stand in a schema: as they are, in lists, and by names."""

_SAYS_NOTHING = frozenset({
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format",
    "$schema", "$id", "$comment", "$defs", "definitions",
})  # fmt: skip
"""What leaves any value, where nothing else stands beside it."""

_ANYTHING = {"type": "value"}
"""What the converter calls any JSON value."""


def schema_rules(schema: Mapping[str, Any] | bool, name: str = "") -> tuple[str, dict[str, str]]:
    """Return the GBNF rules of a JSON schema.

    Bounds of numbers that are no integers, and `multipleOf`, are not in them.

    Args:
        schema: As Python has it; {} or True: any JSON value.
        name: What its own rules' names begin with, and what the whole is called; "": the whole is
            `root`. What all schemas have alike, such as `string`, is called so.

    Returns:
        The name of the whole, and the rules by their names.

    Raises:
        ArgumentError: It cannot be converted.
    """
    try:
        written = json.dumps(schema, ensure_ascii=False)
        written.encode()
        copy = json.loads(written)  # which the converter may change
        _check(copy)
        converter = _Converter(name)
        whole = converter.visit(converter.resolve_refs(copy, "stdin"), name)
    except ArgumentError as error:
        raise ArgumentError(f"json_schema cannot be converted: {error!s:.200}.") from None
    except RecursionError:
        raise ArgumentError("json_schema nests too deep to be converted.") from None
    except UnicodeEncodeError:
        raise ArgumentError("json_schema holds a lone surrogate, which is no character.") from None
    except Exception as error:  # the converter raises all kinds, and bare assertions
        what = str(error) or type(error).__name__
        raise ArgumentError(f"json_schema cannot be converted: {what:.200}.") from None
    return whole, converter.rules


class _Converter(SchemaConverter):
    def __init__(self, name: str) -> None:
        super().__init__(prop_order={}, allow_fetch=False, dotall=False, raw_pattern=False)
        self._name = name
        self._rule_of: dict[str, str] = {}  # [reference]

    @property
    def rules(self) -> dict[str, str]:
        return dict(self._rules)

    def visit(self, schema: Any, name: str) -> str:
        if schema is True or not schema.keys() - _SAYS_NOTHING:
            return str(super().visit(_ANYTHING, name))
        kinds = schema.get("type")
        if isinstance(kinds, list):
            # Constants say it all; else the converter would leave out all that stands beside.
            rest = {key: value for key, value in schema.items() if key != "type"}
            constant = "enum" in schema or "const" in schema
            return self.visit(
                rest if constant else {"anyOf": [rest | {"type": one} for one in kinds]}, name
            )
        if (
            kinds == "array"
            and schema.get("items", {}) in ({}, True)
            and "prefixItems" not in schema
        ):
            schema = schema | {"items": _ANYTHING}
        if kinds == "integer" and (bounds := _integers(schema)) != (None, None):
            return str(self._add_rule(name or "root", f"({integer_rule(*bounds)}) space"))
        return str(super().visit(schema, name))

    def _format_literal(self, literal: str) -> str:
        # What stands in a text as JSON, with the characters themselves.
        return quoted(json.dumps(json.loads(literal), ensure_ascii=False))

    def _visit_pattern(self, pattern: str, name: str) -> str:
        return str(self._add_rule(name, f"{pattern_rule(pattern)} space"))

    def _resolve_ref(self, ref: str) -> str:
        if ref not in self._rule_of:
            # By a number: definitions may be called anything, as what has a rule already, too.
            prefix = f"{self._name}-" if self._name else ""
            own = self._rule_of[ref] = f"{prefix}definition-{len(self._rule_of)}"
            self._rule_of[ref] = self.visit(self._refs[ref], own)
            if own not in self._rules:
                self._add_rule(own, self._rule_of[ref])
        return self._rule_of[ref]

    def _add_primitive(self, name: str, rule: BuiltinRule) -> str:
        if name == "char":
            # The converter's lets strings hold line breaks, which JSON does not.
            rule = BuiltinRule(rule.content.replace(r'[^"\\]', r'[^"\\\x00-\x1F]', 1), rule.deps)
        return str(super()._add_primitive(name, rule))


def _integers(schema: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The lowest and the highest integer that the bounds of a schema let through."""
    lows = [math.ceil(schema["minimum"])] if "minimum" in schema else []
    highs = [math.floor(schema["maximum"])] if "maximum" in schema else []
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if isinstance(above, bool):  # of old: whether the minimum itself is out
        above = schema.get("minimum") if above else None
    if isinstance(below, bool):
        below = schema.get("maximum") if below else None
    if above is not None:
        lows.append(math.floor(above) + 1)
    if below is not None:
        highs.append(math.ceil(below) - 1)
    low, high = max(lows, default=None), min(highs, default=None)
    if low is not None and high is not None and low > high:
        raise ArgumentError("there is no integer between its minimum and its maximum")
    return low, high


def _check(schema: Any) -> None:
    """Raise ArgumentError where something is not of the type that it must have, or would fill the
    memory: the converter writes as many copies of a rule as there are repetitions."""
    parts = [schema]
    while parts:
        part = parts.pop()
        if part is True:
            continue
        if not isinstance(part, dict):
            raise ArgumentError(f"{json.dumps(part):.80} stands where a schema must be")
        if "$ref" in part:
            _check_reference(part["$ref"], schema)
        _check_types(part)
        parts += _inner(part)


def _inner(schema: Mapping[str, Any]) -> Iterator[Any]:
    for key in _OBJECTS:
        yield from schema.get(key, {}).values()
    for key in _LISTS:
        yield from schema.get(key, [])
    for key in _SCHEMAS:
        value = schema.get(key, True)
        if isinstance(value, list):  # items, of old
            yield from value
        elif value is not False:
            yield value


def _check_types(schema: Mapping[str, Any]) -> None:
    def need(key: str, what: str, holds: Callable[[Any], bool]) -> None:
        if key in schema and not holds(schema[key]):
            raise ArgumentError(f"its {key} must be {what}, not {json.dumps(schema[key]):.80}")

    def is_text(value: Any) -> bool:
        return isinstance(value, str)

    def are_texts(value: Any) -> bool:
        return isinstance(value, list) and all(map(is_text, value))

    need("type", "a type or a list of types", lambda one: is_text(one) or (are_texts(one) and one))
    need("required", "a list of names", are_texts)
    need("enum", "a list of values, not empty", lambda one: isinstance(one, list) and bool(one))
    need("pattern", "a string", is_text)
    need("format", "a string", is_text)
    for key in _OBJECTS:
        need(key, "an object of schemas", lambda one: isinstance(one, dict))
    for key in _LISTS:
        need(key, "a list of schemas, not empty", lambda one: isinstance(one, list) and bool(one))
    for key in _LENGTHS:
        need(key, "a whole number, 0 or more", lambda one: type(one) is int and one >= 0)
        _check_repetitions(key, schema.get(key, 0))
    for key in _NUMBERS:
        need(key, "a number", lambda one: isinstance(one, (int, float)) and math.isfinite(one))
    for number in re.findall(
        r"\d+", " ".join(re.findall(r"\{[\d, ]*\}", schema.get("pattern", "")))
    ):
        _check_repetitions(
            "pattern", int(number[:9])
        )  # the first digits of more are too large, too
    if "*" in schema.get("properties", {}):
        raise ArgumentError('it has a property named "*"')


def _check_repetitions(key: str, n: int) -> None:
    if n > _MOST_REPEATED:
        raise ArgumentError(f"its {key} asks for more than {_MOST_REPEATED} repetitions")


def _check_reference(reference: Any, schema: Any) -> None:
    seen = set()
    while True:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise ArgumentError(
                f"its $ref is {json.dumps(reference):.80}, which is nowhere in the schema (#/...)"
            )
        if reference in seen:
            raise ArgumentError(f"its $ref {reference:.80} leads back to itself")
        seen.add(reference)
        found = schema
        for name in reference.split("/")[1:]:
            if not isinstance(found, dict) or name not in found:
                raise ArgumentError(f"its $ref {reference:.80} is nowhere in the schema")
            found = found[name]
        if not isinstance(found, dict) or "$ref" not in found:
            return
        reference = found["$ref"]
