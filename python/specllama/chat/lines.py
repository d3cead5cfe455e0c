"""What is typed, from standard input as it is: a pipe, or a terminal that cannot do more."""

from __future__ import annotations

import sys
from io import TextIOWrapper

from specllama.chat.typed import CONTINUES, is_open


class Lines:
    """Reads lines, and several as one where quotes or a backslash ask for it.

    Args:
        prompts: Whether somebody sits there, to be shown that it is their turn.
    """

    def __init__(self, *, prompts: bool) -> None:
        self._prompts = prompts
        if isinstance(sys.stdin, TextIOWrapper):  # what is not UTF-8 is told of, not raised
            sys.stdin.reconfigure(errors="surrogateescape")

    def read(self) -> str:
        """Return the next message, or command.

        Raises:
            EOFError: There is none.
            KeyboardInterrupt: Ctrl-C.
        """
        text = self._line("> ")
        if not text:
            raise EOFError
        while is_open(text) or text.rstrip("\n").endswith(CONTINUES):
            line = self._line("  ")
            if not line:
                break
            text = text if is_open(text) else text.rstrip("\n").removesuffix(CONTINUES) + "\n"
            text += line
        return text.rstrip("\n")

    def _line(self, prompt: str) -> str:
        if self._prompts:
            print(prompt, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if self._prompts and not line.endswith("\n"):
            print(file=sys.stderr)
        return line
