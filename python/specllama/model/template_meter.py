"""Limits on the time and memory that a chat template uses."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from itertools import chain
from typing import Any

from specllama.errors import ModelError

SECONDS = 2.0
"""Maximum seconds of CPU time that a template may take."""

MOST_BYTES = 1 << 25
"""Maximum number of bytes of a text or a list."""
_MOST_MADE = 1 << 29
"""Maximum number of bytes of all texts and lists together that a template makes."""
MOST_PARTS = 1_000_000
"""Most values inside a value that is written, compared or sorted; shared values count every
time."""


class TemplateLimitError(ModelError):
    """A chat template takes too long, or too much memory."""


class Meter(threading.local):
    """The remaining time and bytes of the template that this thread runs. Use in a `with`
    statement."""

    def __enter__(self) -> None:
        self._end = time.thread_time() + SECONDS
        self._left = _MOST_MADE
        self._n_steps = 0

    def __exit__(self, *_: object) -> None:
        pass

    def step(self) -> None:
        """Count a step. Its time must be at most proportional to the size of its values."""
        self._n_steps += 1  # reading the clock takes longer than most steps
        if self._n_steps % 16 == 0 and time.thread_time() > self._end:
            raise TemplateLimitError(
                f"The chat template takes more than {SECONDS:g} s; use another one."
            )

    def make(self, n_bytes: int) -> None:
        """Count a text or a list, before or after it is made."""
        self.step()
        self._left -= n_bytes
        if n_bytes > MOST_BYTES or self._left < 0:
            raise TemplateLimitError("The chat template makes a text that is too long.")

    def look_into(self, *values: Any) -> int:
        """Count values and all values inside them; return their bytes when written."""
        n_parts = n_bytes = 0
        waiting = list(values)
        while waiting:
            one = waiting.pop()
            n_parts += 1
            n_bytes += _n_written(one)
            if n_parts > MOST_PARTS or n_bytes > MOST_BYTES:
                self.make(MOST_BYTES + 1)
            if isinstance(one, Mapping):
                waiting.extend(chain.from_iterable(one.items()))
            elif isinstance(one, (list, tuple)):
                waiting.extend(one)
        return n_bytes


def _n_written(value: Any) -> int:
    """Return the bytes of a single value when written."""
    if isinstance(value, (str, bytes)):
        return len(value)
    return 8 + (value.bit_length() // 3 if isinstance(value, int) else 0)
