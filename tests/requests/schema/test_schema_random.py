"""Random JSON schemas are refused with a sentence, or their generated values are valid."""

from __future__ import annotations

import json

import jsonschema
import pytest
from grammar_draws import drawn, of_prepared, read
from random_schemas import random_schema


@pytest.mark.parametrize(
    "seeds", [range(150), pytest.param(range(150, 1650), marks=pytest.mark.slow)]
)
def test_generated_values_of_random_schemas_are_valid(seeds: range) -> None:
    n_accepted = 0
    for seed in seeds:
        schema = random_schema(seed)
        if (grammar := read(schema)) is None:
            continue
        validator = jsonschema.Draft202012Validator(schema)
        texts = [drawn(of_prepared(grammar.text), n) for n in range(5)]
        values = [json.loads(text) for text in texts if text is not None]
        n_accepted += 1
        if not grammar.left and not any("equal names" in one for one in grammar.remarks):
            assert all(map(validator.is_valid, values)), (seed, schema, values)
    assert n_accepted > len(seeds) / 3
