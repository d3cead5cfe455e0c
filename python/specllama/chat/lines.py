"""Reads what is typed from standard input as it is: a pipe, or a terminal without an editor."""

from __future__ import annotations

import sys
from io import TextIOWrapper

from specllama.chat.typed import CONTINUES, is_open


class Lines:
    """Reads messages, mostly of one line; quotes or a backslash at the end continue one.

    Args:
        prompts: Whether to show a prompt, since somebody sits at the terminal.
    """

    def __init__(self, *, prompts: bool) -> None:
        self._prompts = prompts
        if isinstance(sys.stdin, TextIOWrapper):  # bad UTF-8 is reported later, not raised here
            sys.stdin.reconfigure(errors="surrogateescape")

    def read(self) -> str:
        """Return the next message or command.

        Raises:
            EOFError: There are no more.
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
