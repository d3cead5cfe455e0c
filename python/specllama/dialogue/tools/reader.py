"""Splits a model's text, while it is generated, into content and calls."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Sequence

from specllama.dialogue.answer_parts import Arguments, CallBegun, Content, Part
from specllama.dialogue.tools.arguments_reader import ArgumentsReader, reader_of
from specllama.dialogue.tools.format import CallFormat
from specllama.dialogue.tools.shape import flexible
from specllama.dialogue.tools.tool import Tool


class CallReader:
    """Splits a growing text. Text that may become the beginning of a call is held back, with the
    blanks before it.

    Args:
        calls: The format of calls.
        tools: The tools that the model may call.
        only: Whether the text consists only of calls.
    """

    def __init__(self, calls: CallFormat, tools: Sequence[Tool], *, only: bool = False) -> None:
        self._openings = calls.openings(tools)
        self._heads = [
            (re.compile(flexible(one.head) + ("" if one.parameters else r"\s*(?=\{)")), one)
            for one in calls.shapes
        ]
        self._tools = {tool.name: tool for tool in tools}
        self._texts = tuple(self._openings)
        self._first = re.compile("[" + re.escape("".join({one[0] for one in self._texts})) + "]")
        self._text = ""
        self._read: Callable[[], Iterator[Part]] = self._read_content
        self._arguments: ArgumentsReader | None = None
        self._only = only
        self.n_calls = 0

    @property
    def in_call(self) -> bool:
        """Whether the text so far ends inside the arguments of a call."""
        return self._read == self._read_arguments

    def push(self, text: str) -> list[Part]:
        """Read more of the text; return the parts that are final."""
        self._text += text
        parts: list[Part] = []
        before: object = None
        while before != (self._read, self._text):
            before = (self._read, self._text)
            parts.extend(self._read())
        return parts

    def finish(self) -> list[Part]:
        """Return the text that was held back. After a call, or if the text has only calls, it
        belongs to the format of calls: return nothing."""
        if self._text and not self.n_calls and not self._only:
            return [Content(self._text)]
        return []

    def _take(self, n: int) -> str:
        taken, self._text = self._text[:n], self._text[n:]
        return taken

    def _read_content(self) -> Iterator[Part]:
        # Most texts do not have these characters, and need no comparison with hundreds of openings.
        places = [found.start() for found in self._first.finditer(self._text)]
        begin = next((at for at in places if self._text.startswith(self._texts, at)), None)
        if begin is None:
            held = next((at for at in places if self._begins(self._text[at:])), None)
            certain = self._text[:held].rstrip()
        else:
            certain = self._text[:begin].rstrip()
            self._read = self._read_head
        if certain:
            yield Content(self._take(len(certain)))

    def _begins(self, text: str) -> bool:
        """Whether a text may become an opening."""
        return any(one.startswith(text) for one in self._texts)

    def _read_head(self) -> Iterator[Part]:
        heads = [(one.search(self._text), shape) for one, shape in self._heads]
        found = [(head.start(), i) for i, (head, _) in enumerate(heads) if head is not None]
        if not found:
            return
        head, shape = heads[min(found)[1]]
        assert head is not None
        self._take(head.end())
        self._arguments = reader_of(shape, self._tools.get(head["name"]))
        self._read = self._read_arguments
        yield CallBegun(self.n_calls, f"call_{secrets.token_hex(12)}", head["name"])
        self.n_calls += 1

    def _read_arguments(self) -> Iterator[Part]:
        assert self._arguments is not None
        written = self._arguments.push(self._take(len(self._text)))
        if self._arguments.rest is not None:
            self._text = self._arguments.rest
            self._read = self._read_head
        if written:
            yield Arguments(self.n_calls - 1, written)
