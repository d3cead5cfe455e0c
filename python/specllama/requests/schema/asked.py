"""Whether llguidance supports a JSON schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_LONGEST = 10_000
"""Longer parts of a schema (in characters) are not checked and count as unsupported."""


def complaint(text: str) -> str:
    """Return why llguidance does not support a schema, given as JSON text; "" if it does."""
    from llguidance import LLMatcher  # here: importing it takes a while

    return LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(text))


def can_follow(part: Mapping[str, Any]) -> bool:
    """Return whether llguidance supports some keywords of a schema."""
    text = json.dumps(part)
    return len(text) <= _LONGEST and _can_follow(text)


@lru_cache(maxsize=1024)
def _can_follow(text: str) -> bool:
    return not complaint(text)
