"""JSON schemas as grammars, by the converter of llama-cpp-python."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from llama_cpp.llama_grammar import (
    PRIMITIVE_RULES,
    STRING_FORMAT_RULES,
    BuiltinRule,
    SchemaConverter,
)

from specllama.errors import ArgumentError
from specllama.requests.json_text import parsed
from specllama.requests.schema.alternatives import alternatives
from specllama.requests.schema.check import check
from specllama.requests.schema.empty import EmptyError
from specllama.requests.schema.integers import integer_rule
from specllama.requests.schema.literal import literal
from specllama.requests.schema.members import members
from specllama.requests.schema.merged import merged
from specllama.requests.schema.other_names import other_names
from specllama.requests.schema.pattern import pattern_rule
from specllama.requests.schema.references import References
from specllama.requests.schema.repeated import repeated
from specllama.requests.schema.same import are_same, canonical
from specllama.requests.schema.simplified import said, simplified

_MOST_PARTS = 16384
"""Each schema within a schema has a name in the rules: of more, they have too many bytes."""

_CHARACTER = (
    r'[^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" ([0-9a-ce-fA-CE-F] [0-9a-fA-F]{3}'
    r' | [dD] ([0-7] [0-9a-fA-F]{2} | [89abAB] [0-9a-fA-F]{2} "\\u" [dD] [c-fC-F] [0-9a-fA-F]{2})))'
)
"""A character of a string. The converter's own rule lets strings hold line breaks, and escapes of
half a surrogate pair, which are no character."""

_LARGEST = 10**40
"""Bound of an integer: the rule of one with more digits nests too deep."""


def schema_rules(
    schema: Mapping[str, Any] | bool, name: str, most_parts: int = _MOST_PARTS
) -> tuple[str, dict[str, str]]:
    """Return the GBNF rules of a JSON schema.

    Bounds of numbers that are no integers, and `multipleOf`, are not in them.

    Args:
        schema: As Python has it; {} or True: any JSON value.
        name: What its own rules' names begin with, or end with those of its definitions. What all
            schemas have alike, such as `string`, is called so.
        most_parts: The most schemas within it, references followed.

    Returns:
        The name of the whole, and the rules by their names.

    Raises:
        ArgumentError: It cannot be converted.
    """
    try:
        copy = _copied(schema)  # which the converter may change
        references = References(copy)
        check(copy, references)
        converter = _Converter(name, references, most_parts)
        whole = converter.visit(copy, name)
    except ArgumentError as error:
        raise ArgumentError(f"json_schema cannot be converted: {error!s:.200}.") from None
    except RecursionError:
        raise ArgumentError("json_schema nests too deep to be converted.") from None
    except Exception as error:  # the converter raises all kinds, and bare assertions
        what = str(error) or type(error).__name__
        raise ArgumentError(f"json_schema cannot be converted: {what:.200}.") from None
    return whole, converter.rules


def _copied(schema: Any) -> Any:
    try:
        written = json.dumps(schema, ensure_ascii=False, default=_as_dict)
        written.encode()
    except UnicodeEncodeError:
        raise ArgumentError("it holds a lone surrogate, which is no character") from None
    except ValueError:
        raise ArgumentError("it holds a number that is too large, or itself") from None
    try:
        return parsed(written)
    except ValueError as error:
        raise ArgumentError(f"{error}") from None


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds a {type(value).__name__}, which is no JSON value")


class _Converter(SchemaConverter):
    def __init__(self, name: str, references: References, most_parts: int) -> None:
        super().__init__(prop_order={}, allow_fetch=False, dotall=False, raw_pattern=False)
        self._name = name
        self._references = references
        self._rule_of: dict[str, str] = {}  # [references and what is beside them]
        self._most_parts = most_parts
        self._n_parts = 0

    @property
    def rules(self) -> dict[str, str]:
        return dict(self._rules)

    def visit(self, schema: Any, name: str) -> str:
        self._count()
        parts = list(self._parts(schema))
        if any("$ref" in part for part in parts):
            return self._visit_references(parts)
        return self._visit_whole(merged(parts), name)

    def _visit_references(self, parts: Sequence[Mapping[str, Any]]) -> str:
        """Make one rule of all that has the same references and the same beside them: schemas that
        hold themselves have no end otherwise."""
        different = {canonical(told): part for part in parts if (told := said(part))}
        key = " ".join(sorted(different))
        if key not in self._rule_of:
            # By a number, since definitions may be called anything; and as nothing else begins.
            own = self._rule_of[key] = f"definition-{len(self._rule_of)}-{self._name}"
            parts = list(different.values())
            if len(parts) == 1:
                whole = self.visit(self._references.target(parts[0]["$ref"]), own)
            else:
                whole = self._visit_whole(merged(self._at_once(parts)), own)
            self._rule_of[key] = whole
            if own not in self._rules:
                self._add_rule(own, whole)
        return self._rule_of[key]

    def _visit_whole(self, schema: Mapping[str, Any], name: str) -> str:
        """Visit a schema that has neither references nor `allOf`."""
        schema = simplified(schema)
        kind = schema.get("type")
        if "enum" in schema:
            return self._visit_constants(schema["enum"], name)
        if kind == "integer" and (bounds := _integers(schema)) != (None, None):
            return str(self._add_rule(name, f"({integer_rule(*bounds)}) space"))
        if kind == "string" and not _has_form(schema):
            return self._visit_text(schema, name)
        if kind == "array" and "items" in schema:
            return self._visit_list(schema, name)
        if kind == "object" and _describes_members(schema):
            return self._visit_object(schema, name)
        return str(super().visit(schema, name))

    def _visit_constants(self, constants: Sequence[Any], name: str) -> str:
        texts = (json.dumps(constant, ensure_ascii=False) for constant in constants)
        return str(self._add_rule(name, alternatives(texts)))

    def _visit_text(self, schema: Mapping[str, Any], name: str) -> str:
        low, high = schema.get("minLength", 0), schema.get("maxLength")
        if low == 0 and high is None:
            return str(super().visit({"type": "string"}, name))
        char = str(self._add_primitive("char", PRIMITIVE_RULES["char"]))
        text = self._repeated(char, low, high, name)
        return str(self._add_rule(name, rf'"\"" {text} "\"" space'))

    def _visit_list(self, schema: Mapping[str, Any], name: str) -> str:
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        items = ""
        if high != 0:
            first = self.visit(schema["items"], f"{name}-item")
            another = str(self._add_rule(f"{name}-another", f'"," space {first}'))
            rest = None if high is None else high - 1
            items = f"{first} {self._repeated(another, max(low - 1, 0), rest, name)}"
            items = items if low else f"({items})?"
        return str(self._add_rule(name, f'"[" space {items} "]" space'))

    def _visit_object(self, schema: Mapping[str, Any], name: str) -> str:
        properties, required = schema.get("properties", {}), set(schema.get("required", []))
        pairs = [
            (f"{_key(one)} {self.visit(value, f'{name}-{one}')}", one in required)
            for one, value in properties.items()
        ]
        more = schema.get("additionalProperties", False)
        if more is not False:
            another = self._another_member(more, properties, f"{name}-additional")
            pairs.append((f'{another} ("," space {another})*', False))
        numbers = itertools.count()
        text = members(pairs, lambda rest: self._add_rule(f"{name}-rest-{next(numbers)}", rest))
        return str(self._add_rule(name, f'"{{" space {text} "}}" space'))

    def _another_member(self, schema: Any, described: Collection[str], name: str) -> str:
        value = self.visit(schema, f"{name}-value")
        if described:
            key = f"{other_names(described, self._add_rule)} space"
        else:
            key = self._add_primitive("string", PRIMITIVE_RULES["string"])
        return str(self._add_rule(f"{name}-kv", f'{key} ":" space {value}'))

    def _repeated(self, rule: str, low: int, high: int | None, name: str) -> str:
        return repeated(rule, low, high, lambda part: str(self._add_rule(f"{name}-block", part)))

    def _generate_union_rule(self, name: str, alt_schemas: Sequence[Any]) -> str:
        rules, impossible = [], EmptyError("there is nothing to choose from")
        for number, schema in enumerate(alt_schemas):
            n_rules, n_references = len(self._rules), len(self._rule_of)
            try:
                rules.append(self.visit(schema, f"{name}-{number}"))
            except EmptyError as error:
                impossible = error
                # What it has left may name rules that never came.
                _cut(self._rules, n_rules)
                _cut(self._rule_of, n_references)
        if not rules:
            raise impossible
        return " | ".join(rules)

    def _parts(self, schema: Any) -> Iterator[dict[str, Any]]:
        """Yield what a schema asks for at once, as schemas that either are only a reference or have
        neither references nor `allOf`."""
        if schema is True:
            return
        beside = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        if "$ref" in schema:
            target = self._references.target(schema["$ref"])
            yield {"$ref": schema["$ref"]}
            if target is not True and are_same({**target, **said(beside)}, target):
                beside = {}  # which holds anyway
        yield beside
        for one in schema.get("allOf", []):
            yield from self._parts(one)

    def _at_once(self, parts: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Yield what parts ask for, references followed."""
        for part in parts:
            self._count()
            if "$ref" in part:
                yield from self._at_once(self._parts(self._references.target(part["$ref"])))
            else:
                yield part

    def _count(self) -> None:
        self._n_parts += 1
        if self._n_parts > self._most_parts:
            raise ArgumentError(f"it has more than {self._most_parts} parts, references followed")

    def _visit_pattern(self, pattern: str, name: str) -> str:
        return str(self._add_rule(name, f"{pattern_rule(pattern)} space"))

    def _add_primitive(self, name: str, rule: BuiltinRule) -> str:
        if name == "char":
            rule = BuiltinRule(_CHARACTER, [])
        return str(super()._add_primitive(name, rule))


def _describes_members(schema: Mapping[str, Any]) -> bool:
    return "properties" in schema or schema.get("additionalProperties", True) is not True


def _key(name: str) -> str:
    return f'{literal(json.dumps(name, ensure_ascii=False))} space ":" space'


def _cut(entries: dict[str, str], n: int) -> None:
    """Takes back all but the first n."""
    while len(entries) > n:
        entries.popitem()


def _has_form(schema: Mapping[str, Any]) -> bool:
    """Whether a string's form is what the converter goes by, whatever its length."""
    form = schema.get("format", "")
    known = f"{form}-string" in STRING_FORMAT_RULES or re.fullmatch("uuid[1-5]?", form)
    return "pattern" in schema or bool(known)


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
        raise EmptyError("there is no integer between its minimum and its maximum")
    if (low or 0) > _LARGEST or (high or 0) < -_LARGEST:
        raise ArgumentError("its minimum or its maximum leaves only integers that are too large")
    # What lies further out is out of reach anyway.
    return (
        None if low is None or low < -_LARGEST else low,
        None if high is None or high > _LARGEST else high,
    )
