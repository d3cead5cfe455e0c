"""JSON schemas, and the values that a session generates for them."""

from __future__ import annotations

import itertools
import json
from typing import Any

from specllama import SpecSession

TEXT: dict[str, Any] = {"type": "string", "maxLength": 8}
NUMBER: dict[str, Any] = {"type": "integer", "maximum": 999, "minimum": 0}


def record(**properties: Any) -> dict[str, Any]:
    """Return a schema of an object that has all of these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def several(items: Any, least: int = 2) -> dict[str, Any]:
    """Return a schema of an array with `least` to four items."""
    return {"type": "array", "items": items, "minItems": least, "maxItems": 4}


SCHEMAS: dict[str, dict[str, Any]] = {
    "record": record(name=TEXT, identifier=NUMBER),
    "nested": record(origin=record(country=TEXT, continent=record(name=TEXT))),
    "records": several(record(customer=TEXT, quantity=NUMBER), 3),
    "enum": record(direction={"enum": ["clockwise", "counterclockwise", "undetermined"]}),
    "enums": several({"enum": ["approved", "approximate", "rejected"]}, 3),
    "literals": record(version={"const": "1.0.0-alpha"}, valid={"const": True}),
    "numbers": several({"type": "number"}),
    "booleans": record(is_visible={"type": "boolean"}, is_enabled={"type": "boolean"}),
    "pattern": record(date={"type": "string", "pattern": "^20[0-9]{2}-[0-9]{2}-01T00:00:00Z$"}),
    "either": {"anyOf": [record(succeeded=NUMBER), record(succeeded_not=TEXT)]},
    "optional": {"type": "object", "properties": {"first": TEXT, "second": {"type": "null"}}},
    "any bytes": record(**{"größe in m²": NUMBER, "日本語": TEXT}),
}


def values(session: SpecSession, schema: Any, liked: str = '"') -> list[Any]:
    """Return generated values of a schema, with and without a bias for a token such as a quotation
    mark."""
    token = session.tokenize(liked, add_special=False)[-1]
    found = []
    for seed, bias in itertools.product(range(4), (0.0, 8.0) if liked == '"' else (8.0,)):
        result = session.generate(
            "x",
            json_schema=schema,
            max_tokens=1500,
            temperature=1.5,
            seed=seed,
            logit_bias={token: bias},
        )
        assert result.finish_reason == "stop", result.text
        found.append(json.loads(result.text))
    return found


def held(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"]}
