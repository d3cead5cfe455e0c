"""What a chat template may use up while it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from itertools import chain
from typing import Any

from specllama.errors import ModelError

SECONDS = 2.0
"""Most seconds of a processor that a template may take."""

MOST_BYTES = 1 << 25
"""Most bytes of a text or a list."""
_MOST_MADE = 1 << 29
"""Most bytes of all texts and lists together that a template makes of others."""
MOST_PARTS = 1_000_000
"""Most values inside a value that is written, compared or sorted; shared ones count each time."""


class TemplateLimitError(ModelError):
    """A chat template takes too long, or too much memory."""


class Meter(threading.local):
    """What the template that this thread runs has left: use in a `with` statement."""

    def __enter__(self) -> None:
        self._end = time.thread_time() + SECONDS
        self._left = _MOST_MADE
        self._n_steps = 0

    def __exit__(self, *_: object) -> None:
        pass

    def step(self) -> None:
        """Count a step that takes no longer than its values are large."""
        self._n_steps += 1  # asking the clock takes longer than most steps
        if self._n_steps % 16 == 0 and time.thread_time() > self._end:
            raise TemplateLimitError(
                f"The chat template takes more than {SECONDS:g} s; use another one."
            )

    def make(self, n_bytes: int) -> None:
        """Count a text or a list that is about to be made, or was."""
        self.step()
        self._left -= n_bytes
        if n_bytes > MOST_BYTES or self._left < 0:
            raise TemplateLimitError("The chat template makes too long a text; use another one.")

    def look_into(self, *values: Any) -> int:
        """Count values with all that is inside; return the bytes that they take when written."""
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
    """Return the bytes that a single value takes when written."""
    if isinstance(value, (str, bytes)):
        return len(value)
    return 8 + (value.bit_length() // 3 if isinstance(value, int) else 0)
