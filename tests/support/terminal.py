"""A program in a pseudo-terminal; each text is typed only after the program has asked for it."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from typing_extensions import Self

_ESCAPE = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[=>])")
_SECONDS = 60
# Makes the terminal the program's controlling terminal, so that Ctrl-C becomes a signal.
_START = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


class Terminal:
    """A pseudo-terminal and the program that runs in it.

    Args:
        command: The program and its arguments.
        environment: Environment variables in addition to those of this process.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        self._parent, child = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *command],
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
            # Otherwise the program asks the terminal for its cursor position, and gets no answer.
            env={
                **os.environ,
                "TERM": "xterm",
                "PROMPT_TOOLKIT_NO_CPR": "1",
                **(environment or {}),
            },
        )
        os.close(child)
        self.raw = ""
        self._read_up_to = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._parent)

    def type(self, text: str) -> None:
        os.write(self._parent, text.encode())

    def wait_for(self, text: str) -> str:
        """Wait for a text after the last one waited for; return the output up to its end, without
        escape sequences."""
        end = time.monotonic() + _SECONDS
        while True:
            shown = _ESCAPE.sub("", self.raw[self._read_up_to :])
            if text in shown:
                break
            assert self._receive(end), f"never {text!r}: {shown!r}"
        # The end of the text, between the escape sequences.
        low = self._read_up_to
        while text not in _ESCAPE.sub("", self.raw[self._read_up_to : low]):
            low += 1
        shown = _ESCAPE.sub("", self.raw[self._read_up_to : low])
        self._read_up_to = low
        return shown

    def wait(self) -> int:
        """Wait until the program has ended; return its exit code."""
        end = time.monotonic() + _SECONDS
        while self._receive(end):
            pass
        return self._process.wait(_SECONDS)

    def _receive(self, end: float) -> bool:
        """Read output; return False if the program has ended."""
        left = end - time.monotonic()
        ready, _, _ = select.select([self._parent], [], [], max(left, 0))
        assert ready, f"stuck: {self.raw!r}"
        try:
            part = os.read(self._parent, 1 << 16)
        except OSError:  # on Linux, the end
            return False
        self.raw += part.decode(errors="replace")
        return bool(part)
