"""One of many texts as a rule in which what they begin with in common stands once."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator
from itertools import groupby

from specllama.requests.schema.literal import literal

_DEEPEST = 32
"""Groups within groups: readers of grammars call themselves for each, and refuse too many."""

_MARKS = 5
"""Characters that a group takes beside what stands in it: two quotation marks, a blank, two
parentheses."""


def alternatives(texts: Iterable[str]) -> str:
    """Return the GBNF of one of these texts.

    If a thousand texts stand side by side, a reader follows all of them through what they begin
    with, and tries each token of the vocabulary on each. In a trie (Fredkin, "Trie memory", 1960)
    it follows one until they part. Beginnings are shared where that makes the rule shorter, so no
    list of texts becomes too long by it.

    Args:
        texts: At least one, in any order.
    """
    return _one_of(sorted(set(texts)), _DEEPEST)


def _one_of(texts: list[str], depth: int) -> str:
    return " | ".join(_branches(texts, depth))


def _branches(texts: list[str], depth: int) -> Iterator[str]:
    """Yield the alternatives for sorted texts: whole texts, and beginnings with all their ends."""
    for _, alike in groupby(texts, key=lambda text: text[:1]):
        group = list(alike)
        begin = os.path.commonprefix([group[0], group[-1]])  # noqa: RUF071 of any texts
        if depth and len(begin) * (len(group) - 1) > _MARKS:
            ends = _one_of([text[len(begin) :] for text in group], depth - 1)
            yield f"{literal(begin)} ({ends})"
        else:
            yield from map(literal, group)
