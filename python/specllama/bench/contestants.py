"""The contestants: ways to decode, each with its own session. They take turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from specllama._core import MatchedToken, MatchFinder
from specllama.drafter import Drafter
from specllama.errors import ArgumentError
from specllama.session import SpecSession

FIXED = (1, 2, 4, 8, 16)
"""Draft lengths of the fixed contestants."""

Who: TypeAlias = Literal["ngram", "match", "model", "cascade"]
"""ngram: n-grams and matches, the drafter of a session without a draft model; match: only matches;
model: only a draft model; cascade: all of these."""

_WITH_MODEL: tuple[Who, ...] = ("model", "cascade")


@dataclass(frozen=True)
class Contestant:
    """A way to decode.

    Attributes:
        name: "plain"; "ngram", "match", "model" or "cascade": the planner with that drafter;
            "ngram-N" or "model-N": that drafter with drafts of N tokens.
        drafter: The drafter; None: plain decoding.
        spec_length: As for SpecSession.
    """

    name: str
    drafter: Who | None
    spec_length: int | Literal["auto"]

    @property
    def fixed_length(self) -> int | None:
        """Number of tokens that it always drafts; None if it is planned, or for plain decoding."""
        return None if self.spec_length == "auto" else self.spec_length

    @property
    def has_model(self) -> bool:
        """Whether it uses a draft model."""
        return self.drafter in _WITH_MODEL


PLAIN = Contestant("plain", None, "auto")
_PLANNED = {who: Contestant(who, who, "auto") for who in ("ngram", "match", *_WITH_MODEL)}
_FIXED = [Contestant(f"{who}-{n}", who, n) for who in ("ngram", "model") for n in FIXED]
_USUAL = (_PLANNED["ngram"], _PLANNED["cascade"])
_ALL = (*_PLANNED.values(), *_FIXED)


def choose(names: str | None, *, with_model: bool) -> list[Contestant]:
    """Return the contestants that the command line names, with plain always first.

    Args:
        names: "all", or names separated by commas; None: plain, ngram and, if there is a draft
            model, cascade.
        with_model: Whether there is a draft model.

    Raises:
        ArgumentError: A contestant does not exist, or needs a draft model.
    """
    if names is None or names == "all":
        known = _USUAL if names is None else _ALL
        return [PLAIN, *(one for one in known if with_model or not one.has_model)]
    by_name = {one.name: one for one in (PLAIN, *_ALL)}
    chosen = [PLAIN]
    for name in names.split(","):
        if name not in by_name:
            raise ArgumentError(
                f"There is no contestant {name!r}; choose from {', '.join(by_name)}."
            )
        if by_name[name].has_model and not with_model:
            raise ArgumentError(f"The contestant {name} needs a draft model (-md).")
        if by_name[name] not in chosen:
            chosen.append(by_name[name])
    return chosen


@contextmanager
def sessions(
    contestants: Sequence[Contestant], model: str | None, draft_model: str | None, **options: Any
) -> Iterator[list[SpecSession]]:
    """Open a session for each contestant, in order, and close all at the end. The sessions share
    only the memory pages of the model's file."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(open_session(one, model, draft_model, **options))
            for one in contestants
        ]


def open_session(
    contestant: Contestant, model: str | None, draft_model: str | None, **options: Any
) -> SpecSession:
    """Open the session of a contestant; the options are SpecSession's."""
    return SpecSession(
        model,
        _draft(contestant, draft_model),
        spec_length=contestant.spec_length,
        cascade=contestant.drafter == "cascade",
        **options,
    )


def _draft(contestant: Contestant, draft_model: str | None) -> str | Drafter | None:
    if contestant.has_model:
        return draft_model
    return Matches() if contestant.drafter == "match" else contestant.drafter


class Matches(Drafter):
    """Copies the tokens after the longest match. Drafts nothing without a match."""

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:
        self._finder = MatchFinder()

    def propose(
        self, sequence: int, tokens: NDArray[np.int32], max_tokens: int
    ) -> list[MatchedToken]:
        self._finder.append_batch(tokens[len(self._finder) :])
        return self._finder.predict(max_tokens)
