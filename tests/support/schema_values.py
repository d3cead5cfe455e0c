"""What a model says by a JSON schema."""

from __future__ import annotations

import itertools
import json
from typing import Any

from specllama import SpecSession


def values(session: SpecSession, schema: Any, liked: str = '"') -> list[Any]:
    """What comes by a schema, and with quotation marks, say, wherever they may be."""
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
