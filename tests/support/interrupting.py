"""Ctrl-C at a chosen place."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

_PLACES = ("call", "return", "c_return")
"""Events that can be counted and at which Python handles signals in the main thread: the begin of a
function, and the end of a call. (Not before a call in C: no signal is handled between the end of a
`with` block and the release of its lock.)"""


def interrupted(call: Callable[[], object], n: int) -> bool:
    """Run a call, and raise KeyboardInterrupt at the n-th such event, counted from 0; return
    whether there were as many."""
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
    except RuntimeError as error:  # Thread.start fails because of its own lock
        if not isinstance(error.__context__, KeyboardInterrupt):
            raise
    finally:
        sys.setprofile(None)
    return left <= 0
