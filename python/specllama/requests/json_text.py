"""JSON from untrusted sources."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

_DEEPEST = 256
"""Most levels of nesting. Recursive code could not follow much deeper nesting."""

_MOST_DIGITS = 1000

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def parsed(text: str | bytes) -> Any:
    """Return the JSON value of a text. Raises ValueError, with a reason, if the text is not valid
    JSON, has a number that is too large, or nests too deep."""
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_number, parse_int=_whole)
    except RecursionError:
        raise ValueError("it nests too deep") from None
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for one in level for inner in parts_of(one)]
        if not level:
            return value
    raise ValueError("it nests too deep")


def whole_characters(text: str) -> str:
    """Return a text with each half of a surrogate pair, which is not a character, replaced by
    U+FFFD."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def with_whole_characters(value: Any) -> Any:
    """Return a JSON value, as `parsed` returns it, with `whole_characters` applied to its texts."""
    written = json.dumps(value, ensure_ascii=False)
    whole = whole_characters(written)
    return value if whole == written else json.loads(whole)


def parts_of(value: Any) -> list[Any]:
    """Return the values directly inside a JSON value."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text:.40} is too large a number")
    return value


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"{text:.40} is too large a number")
    return int(text)
