"""Where a target elsewhere is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from specllama import _check
from specllama.errors import ArgumentError


@dataclass(frozen=True)
class TargetOptions:
    """Where a target elsewhere is, and how requests reach it.

    Attributes:
        url: The argument `target` of `SpecSession`.
        key, timeout: Its arguments `target_key` and `target_timeout`.
        tokenizer: Its argument of that name.
    """

    url: str
    key: str | None = None
    timeout: float = 600.0
    tokenizer: str | os.PathLike[str] | None = None

    @classmethod
    def checked(cls, url: Any, key: Any, timeout: Any, tokenizer: Any) -> TargetOptions | None:
        """Return the options that a session was given; None if there is no URL, since the target
        is here then. Raises ArgumentError, also for an option that is of no use without a URL."""
        seconds = _check.number("target_timeout", timeout)
        if not 0 < seconds < 86400:
            raise ArgumentError(
                f"target_timeout must be above 0 and below a day, not {_check.quoted(timeout)}."
            )
        key = _check.optional(_check.text, "target_key", key)
        if url is not None:
            return cls(_check.text("target", url), key, seconds, tokenizer)
        for name, value, default in (
            ("target_key", key, cls.key),
            ("target_timeout", seconds, cls.timeout),
            ("tokenizer", tokenizer, cls.tokenizer),
        ):
            if _check.differ(value, default):
                raise ArgumentError(
                    f"{name} is for a target elsewhere; give target, or leave it out."
                )
        return None
