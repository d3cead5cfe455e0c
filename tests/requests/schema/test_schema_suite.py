"""The JSON Schema Test Suite: values generated for accepted schemas are valid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from folders import DATA
from grammar_draws import accepts, drawn, of_prepared, read

FOLDER = DATA / "json_schema_test_suite"
VALIDATORS: dict[str, Any] = {
    "draft7": jsonschema.Draft7Validator,
    "draft2020-12": jsonschema.Draft202012Validator,
}
DRAFT7 = {"$schema": "http://json-schema.org/draft-07/schema#"}


def cases(draft: str) -> Iterator[tuple[Any, Any]]:
    """Yield schemas with their tests, except for two that need \\p{}, which Python's regular
    expressions do not have."""
    for line in (FOLDER / f"{draft}.jsonl").read_text().splitlines():
        case = json.loads(line)
        schema = case["schema"]
        if draft == "draft7" and isinstance(schema, dict):
            schema = DRAFT7 | schema
        if r"\p{" not in json.dumps(schema).replace("\\\\", "\\"):
            yield schema, case["tests"]


@pytest.mark.parametrize(
    ("draft", "n_schemas", "n_accepted", "share"),
    [("draft7", 257, 204, 0.95), ("draft2020-12", 381, 276, 0.95)],
)
def test_schemas_of_the_suite_generate_all_and_only_valid_values(
    draft: str, n_schemas: int, n_accepted: int, share: float
) -> None:
    found: list[Any] = []
    may_come = []
    for schema, tests in cases(draft):
        found.append(None)
        if (grammar := read(schema, strict=True)) is None:
            continue
        validator, prepared = VALIDATORS[draft](schema), of_prepared(grammar.text)
        texts = [drawn(prepared, seed) for seed in range(10)]
        assert None not in texts, schema
        invalid = [one for one in texts if not validator.is_valid(json.loads(one or b""))]
        assert not invalid or grammar.remarks, (schema, invalid)
        found[-1] = not invalid
        for test in tests:
            may = accepts(prepared, json.dumps(test["data"], ensure_ascii=False))
            if test["valid"]:
                may_come.append(may)
            else:
                assert not may or grammar.remarks, (schema, test)
    assert len(found) == n_schemas
    assert found.count(True) >= n_accepted
    assert sum(may_come) >= share * len(may_come)
