"""The record of every round of a generation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from specllama._core import RoundTrace, Stats
from specllama.formats import trace_page
from specllama.formats.statistics import in_words
from specllama.formats.traced_token import Kind, TracedToken

_PROMPT_LENGTH = 400


@dataclass(frozen=True)
class Trace:
    """The record of every round of a generation. Notebooks and `to_html` show the text with the
    drafter of each token (after Leviathan et al. 2023, figure 1); `str()` has a line per round.

    Attributes:
        rounds: The rounds, in order.
        prompt: The end of the prompt's text.
        pieces: The text of every token id that occurs in the rounds.
        stats: The statistics of the generation.
    """

    rounds: list[RoundTrace]
    prompt: str
    pieces: dict[int, str]
    stats: Stats

    def tokens(self, index: int) -> Iterator[TracedToken]:
        """Return the tokens of the round at `index`, drafted ones first, forced ones last. In a
        tree, a rejected branch is at the position where it leaves the accepted tokens."""
        one = self.rounds[index]
        n_left = self.stats.generated_tokens - one.position  # tokens beyond the end are cut off
        n_accepted = 0
        last: int | None = None  # index of the last accepted draft token
        for i, drafted in enumerate(one.draft):
            kind: Kind = "rejected"
            if drafted.accepted:
                kind = "accepted" if n_accepted < n_left else "cut"
                n_accepted += 1
                last = i
            forks = i > 0 and drafted.parent != i - 1
            yield TracedToken(kind, drafted.token, self._text(drafted.token), drafted, forks)
        if one.next is None:
            return
        if one.accepted >= n_left:
            kind = "cut"
        elif not one.draft:
            kind = "plain"
        else:
            guessed = any(drafted.parent == last for drafted in one.draft)
            kind = "replacement" if guessed else "bonus"
        yield TracedToken(kind, one.next, self._text(one.next), None)
        for i, token in enumerate(one.forced, one.accepted + 1):
            kind = "forced" if i < n_left else "cut"
            yield TracedToken(kind, token, self._text(token), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the end of the prompt and the rounds as a dict of JSON values."""
        return {
            "prompt": self.prompt,
            "rounds": [
                {
                    "position": one.position,
                    "tokens": [token.to_dict() for token in self.tokens(index)],
                    "draft_seconds": one.draft_seconds,
                    "decode_seconds": one.decode_seconds,
                    "expected_tokens": one.expected_tokens,
                    "expected_seconds": one.expected_seconds,
                }
                for index, one in enumerate(self.rounds)
            ],
        }

    def to_html(self, about: str = "") -> str:
        """Return a self-contained HTML document: the text, coloured and underlined by drafter, with
        rejected tokens struck out, and the data of every token on hover.

        Args:
            about: A line below the heading, e.g. with the model's name and the date.
        """
        return trace_page.document(self.to_fragment(), "Trace of a generation", about)

    def _repr_html_(self) -> str:
        return self.to_fragment()

    def to_fragment(self) -> str:
        """Return the content of `to_html` as one element, for use in another page."""
        rounds = [(one, list(self.tokens(index))) for index, one in enumerate(self.rounds)]
        return trace_page.fragment(self.figures(), self.prompt, rounds)

    def __str__(self) -> str:
        """Return the figures, and a line per round with its number, time and tokens."""
        width = len(str(len(self.rounds)))
        lines = [*self.figures(), ""]
        for index, one in enumerate(self.rounds):
            runs = groupby(self.tokens(index), key=attrgetter("name"))
            text = " ".join(f"{name} {''.join(t.text for t in run)!r}" for name, run in runs)
            milliseconds = 1e3 * (one.draft_seconds + one.decode_seconds)
            lines.append(f"{index + 1:>{width}} {milliseconds:>9.2f} ms  {text}")
        return "\n".join(lines)

    def figures(self) -> list[str]:
        """Return the statistics of the generation in a few readable lines."""
        return in_words(self.stats)

    def _text(self, token: int) -> str:
        return self.pieces.get(token) or f"<{token}>"


def shortened(prompt: str) -> str:
    """Return the end of a prompt, as a trace shows it."""
    return prompt if len(prompt) <= _PROMPT_LENGTH else f"…{prompt[-_PROMPT_LENGTH:]}"
