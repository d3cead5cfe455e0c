"""The address of a remote target, and related options."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from specllama import _check
from specllama.errors import ArgumentError


@dataclass(frozen=True)
class TargetOptions:
    """The address of a remote target, and options of requests to it.

    Attributes:
        url: The argument `target` of `SpecSession`.
        key, timeout: Its arguments `target_key` and `target_timeout`.
        tokenizer: Its argument `tokenizer`.
    """

    url: str
    key: str | None = None
    timeout: float = 600.0
    tokenizer: str | os.PathLike[str] | None = None

    @classmethod
    def checked(cls, url: Any, key: Any, timeout: Any, tokenizer: Any) -> TargetOptions | None:
        """Check the options given to a session; return None without a URL, because then the target
        is local. Raises ArgumentError, also for an option that needs a URL."""
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
                raise ArgumentError(f"{name} is for a remote target; give target, or leave it out.")
        return None
