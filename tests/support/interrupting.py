"""Ctrl-C at a chosen place."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

_PLACES = ("call", "return", "c_return")
"""Where Python handles signals in the main thread, of what can be counted: as a function begins,
and after a call. (Not before a call in C: between the end of a `with` block and the release of its
lock nothing is handled.)"""


def interrupted(call: Callable[[], object], n: int) -> bool:
    """Do something, and raise KeyboardInterrupt at the n-th such place from 0; return whether there
    were as many."""
    left = n + 1

    def profile(_frame: FrameType, event: str, _what: Any) -> None:
        nonlocal left
        left -= event in _PLACES
        if left == 0:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        call()
    except KeyboardInterrupt:
        pass
    except RuntimeError as error:  # threading.Thread.start stumbles over its own lock
        if not isinstance(error.__context__, KeyboardInterrupt):
            raise
    finally:
        sys.setprofile(None)
    return left <= 0
