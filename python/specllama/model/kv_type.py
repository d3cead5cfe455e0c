"""The types of the KV memory."""

from __future__ import annotations

from typing import Any

from specllama import _check
from specllama.errors import ArgumentError

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
"""As in the core, which does not know whose type it refuses: the target's or the draft model's."""


def kv_type(name: str, value: Any) -> str | None:
    """Return `value` if it is None or a type of the KV memory. Raises ArgumentError.

    Args:
        name: Of the option.
        value: The type; None: the core's default.
    """
    known = _check.optional(_check.text, name, value)
    if known is not None and known not in KV_TYPES:
        raise ArgumentError(
            f"{name} must be one of {', '.join(KV_TYPES)}, not {_check.quoted(known)}."
        )
    return known
