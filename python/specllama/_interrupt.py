"""Ctrl-C where something is to be kept."""

from __future__ import annotations

import signal
from typing import Any

from typing_extensions import Self

from specllama.requests.stream import Stream


class Interrupt:
    """Has Ctrl-C end a generation while a `with` statement lasts, in place of raising
    KeyboardInterrupt wherever it comes: while what there is is being kept, say.

    Where Ctrl-C is ignored, as behind nohup, it still is.

    Args:
        stream: The generation.
        once: A second Ctrl-C raises KeyboardInterrupt.

    Attributes:
        came: Whether there was one.
    """

    def __init__(self, stream: Stream, *, once: bool = False) -> None:
        self.came = False
        self._stream = stream
        self._once = once
        self._before: Any = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        if self._before is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._end)
        return self

    def __exit__(self, *exc: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _end(self, *_: object) -> None:
        if self._once:
            signal.signal(signal.SIGINT, self._before)
        self.came = True
        self._stream.cancel()
