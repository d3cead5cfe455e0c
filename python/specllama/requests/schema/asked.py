"""llguidance's word on JSON schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_LONGEST = 10_000
"""Characters of a part of a schema that is asked about by itself."""


def complaint(text: str) -> str:
    """Return why llguidance cannot follow a schema, written as JSON; "" if it can."""
    from llguidance import LLMatcher  # here, as it takes a while

    return LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(text))


def can_follow(part: Mapping[str, Any]) -> bool:
    """Return whether llguidance can follow some keywords of a schema."""
    text = json.dumps(part)
    return len(text) <= _LONGEST and _can_follow(text)


@lru_cache(maxsize=1024)
def _can_follow(text: str) -> bool:
    return not complaint(text)
