"""Reads input from standard input: a pipe, or a terminal without an editor."""

from __future__ import annotations

import sys
from io import TextIOWrapper

from specllama.chat.typed import CONTINUES, is_open


class Lines:
    """Reads messages of one line, or of several with quotes or a backslash at the end of a line.

    Args:
        prompts: Show a prompt, for a terminal.
    """

    def __init__(self, *, prompts: bool) -> None:
        self._prompts = prompts
        if isinstance(sys.stdin, TextIOWrapper):  # bad UTF-8 is reported later
            sys.stdin.reconfigure(errors="surrogateescape")

    def read(self) -> str:
        """Return the next message or command.

        Raises:
            EOFError: The input has ended.
            KeyboardInterrupt: Ctrl-C was pressed.
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
