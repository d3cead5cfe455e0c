"""Fill-in-the-middle prompts, for models that have the tokens for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from specllama.errors import ModelError

_REPOSITORY = "myproject\n"
_THIS_FILE = "filename\n"
_SNIPPET = "\n\n--- snippet ---\n\n"


class FimTokens(NamedTuple):
    """The fill-in-the-middle tokens of a vocabulary; -1 for a missing one."""

    prefix: int
    suffix: int
    middle: int
    repository: int
    file: int


@dataclass(frozen=True)
class Infill:
    """A prompt whose continuation fills a gap.

    Attributes:
        tokens: The prompt.
        left_out: Tokens of the texts that did not fit into the prompt.
    """

    tokens: list[int]
    left_out: list[int]


class InfillPrompts:
    """Makes prompts in the form of Qwen2.5-Coder and llama.cpp's server: other files, the text
    before the gap, the text after it, each after its special token.

    Args:
        fim: The model's tokens for filling in the middle.
        bos: Tokens with which every prompt begins, if any.
        tokenize: Returns the tokens of a text, without special tokens.

    Raises:
        ModelError: The model does not have these tokens.
    """

    def __init__(
        self, fim: FimTokens, bos: Sequence[int], tokenize: Callable[[str], list[int]]
    ) -> None:
        if min(fim.prefix, fim.suffix, fim.middle) < 0:
            raise ModelError(
                "The model has no tokens for filling in the middle; use a code model that was "
                "trained for it."
            )
        self._fim = fim
        self._bos = list(bos)
        self._tokenize = tokenize

    def make(self, prefix: str, suffix: str, files: Iterable[tuple[str, str]], most: int) -> Infill:
        """Return a prompt.

        Args:
            prefix, suffix: The text before and after the gap.
            files: Names and texts of other files that may help, the most important last.
            most: Maximum number of prompt tokens. Text farthest from the gap is left out: first
                other files, beginning with the first; then the outer ends of this text. The text
                after the gap gets a quarter of the room, or more if the text before it leaves more
                free.
        """
        before, after = self._tokenize(prefix), self._tokenize(suffix)
        room = max(0, most - len(self._bos) - 3)
        n_after = min(len(after), max(room // 4, room - len(before)))
        n_before = min(len(before), room - n_after)
        far, near = before[: len(before) - n_before], before[len(before) - n_before :]
        others, left_out = self._others(files, room - n_before - n_after)
        tokens = [
            *self._bos, *others,
            self._fim.prefix, *near, self._fim.suffix, *after[:n_after], self._fim.middle,
        ]  # fmt: skip
        return Infill(tokens, left_out + far + after[n_after:])

    def _others(self, files: Iterable[tuple[str, str]], room: int) -> tuple[list[int], list[int]]:
        """Return the tokens of as many of the last files as fit, and the tokens of the others."""
        written = [self._file(name, text) for name, text in files]
        if not written:
            return [], []
        frame = self._frame()
        room -= sum(map(len, frame))
        first = len(written)
        while first > 0 and len(written[first - 1]) <= room:
            first -= 1
            room -= len(written[first])
        left_out = list(chain.from_iterable(written[:first]))
        if first == len(written):
            return [], left_out
        return [*frame[0], *chain.from_iterable(written[first:]), *frame[1]], left_out

    def _frame(self) -> tuple[list[int], list[int]]:
        """Return the tokens before the other files, and those between them and this file."""
        fim = self._fim
        begin = [fim.repository, *self._tokenize(_REPOSITORY)] if fim.repository >= 0 else []
        return begin, [fim.file, *self._tokenize(_THIS_FILE)] if fim.file >= 0 else []

    def _file(self, name: str, text: str) -> list[int]:
        if self._fim.file < 0:
            return self._tokenize(_SNIPPET) + self._tokenize(text)
        return [self._fim.file, *self._tokenize(f"{name}\n"), *self._tokenize(text)]
