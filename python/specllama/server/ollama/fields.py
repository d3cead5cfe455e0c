"""Translates the fields of a request of Ollama's API to those that all APIs share."""

from __future__ import annotations

import re
from typing import Any

from specllama._field import INT32
from specllama.requests.options import FIELDS
from specllama.server.body.fields import Fields
from specllama.server.error import leave_out

_SHARED = frozenset(
    name for option in FIELDS.values() if option.field for name in (option.field, *option.aliases)
)
"""Options that have the same name everywhere, such as `top_k`."""

HONOURED = _SHARED | {"stop", "num_predict"}
"""Options that change an answer."""

_OF_REQUESTS = (
    "model", "messages", "tools", "prompt", "images", "suffix", "system", "context", "raw",
    "format", "think", "stream", "logprobs", "top_logprobs",
)  # fmt: skip
"""Fields outside `options` that the server reads."""

_LONGEST_LIST = 200
"""Maximum characters of a list of names in the log."""

_DURATION = re.compile(r"([+-]?)((?:\d{1,20}(?:\.\d{0,20})?(?:ns|us|µs|ms|s|m|h))+|\d{1,20})")
_PART = re.compile(r"(\d+\.?\d*)(ns|us|µs|ms|s|m|h|$)")
_SECONDS = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0,
}  # fmt: skip


def translated(fields: Fields) -> Fields:
    """Return the fields of a request, and those in its `options` on the same level. Answers are
    streamed by default. Options without an effect are named in the log. Raises ApiError."""
    options = fields.object("options").given
    honoured = {name: value for name, value in options.items() if name in HONOURED}
    # A value that switches an option off, such as `mirostat: 0`, has nothing to ignore.
    ignored = sorted(name for name, value in options.items() if name not in HONOURED and value)
    if ignored:
        leave_out(f"the options {', '.join(ignored):.{_LONGEST_LIST}}")
    keep_alive(fields)
    given = {name: fields.any(name) for name in _OF_REQUESTS if name in fields}
    found = Fields({"stream": True, **given, **honoured})
    found.media = fields.media
    return found


def most_tokens(fields: Fields, default: int | None) -> int | None:
    """Return `num_predict`, the maximum number of tokens to generate. None: as many as the context
    holds, for 0 and less. Raises ApiError."""
    most = fields.integer("num_predict", low=-INT32, high=2**63 - 1)
    if most is None:
        return default
    return min(most, INT32) if most > 0 else None


def template_args(fields: Fields) -> dict[str, Any]:
    """Return the chat template's arguments for the field `think`: true, false or an effort. Raises
    ApiError."""
    wanted = fields.any("think")
    if wanted is None or wanted == "":
        return {}
    if isinstance(wanted, bool):
        return {"enable_thinking": wanted}
    if wanted not in ("low", "medium", "high", "max"):
        fields.refuse("think", 'true, false, "low", "medium", "high" or "max"')
    return {"reasoning_effort": wanted}


def keep_alive(fields: Fields) -> float | None:
    """Return `keep_alive`, the seconds without a request after which a model may be unloaded.
    Negative: never; None: not given. The field is a number, or a duration such as "1h30m". Raises
    ApiError."""
    given = fields.any("keep_alive")
    if given in (None, ""):
        return None
    if isinstance(given, str) and (found := _DURATION.fullmatch(given)):
        seconds = sum(float(one[1]) * _SECONDS[one[2]] for one in _PART.finditer(found[2]))
        return -seconds if found[1] == "-" else seconds
    if isinstance(given, str):
        fields.refuse("keep_alive", 'seconds, or a duration such as "5m"')
    return fields.number("keep_alive")
