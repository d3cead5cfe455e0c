"""Who takes turns: ways to decode, each a session of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from specllama.errors import ArgumentError
from specllama.session import SpecSession

FIXED = (1, 2, 4, 8, 16)
"""Draft lengths of the fixed contestants."""

_MODEL_LENGTH = 4


@dataclass(frozen=True)
class Contestant:
    """A way to decode.

    Attributes:
        name: plain; auto: the planner, over n-grams and matches; cascade: the planner, over these
            and a draft model; ngram-N, model-N: drafts of N tokens.
        drafter: Who drafts.
        spec_length: As SpecSession takes it.
    """

    name: str
    drafter: Literal["ngram", "model"] | None
    spec_length: int | Literal["auto"]

    @property
    def is_fixed(self) -> bool:
        """Whether it drafts so many tokens, come what may."""
        return self.drafter is not None and self.spec_length != "auto"


PLAIN = Contestant("plain", None, "auto")
_USUAL = (Contestant("auto", "ngram", "auto"), Contestant("cascade", "model", "auto"))
_ALL = (
    *_USUAL,
    Contestant(f"model-{_MODEL_LENGTH}", "model", _MODEL_LENGTH),
    *(Contestant(f"ngram-{n}", "ngram", n) for n in FIXED),
)


def choose(names: str | None, *, with_model: bool) -> list[Contestant]:
    """Return the contestants that the command line asks for, plain always the first.

    Args:
        names: "all", or names separated by commas; None: plain, auto and, if there is a draft
            model, cascade.
        with_model: Whether there is a draft model.

    Raises:
        ArgumentError: There is no such contestant, or it needs a draft model.
    """
    if names is None or names == "all":
        known = _USUAL if names is None else _ALL
        return [PLAIN, *(one for one in known if with_model or one.drafter != "model")]
    by_name = {one.name: one for one in (PLAIN, *_ALL)}
    chosen = [PLAIN]
    for name in names.split(","):
        if name not in by_name:
            raise ArgumentError(
                f"There is no contestant {name!r}; there are: {', '.join(by_name)}."
            )
        if by_name[name].drafter == "model" and not with_model:
            raise ArgumentError(f"The contestant {name} needs a draft model (-md).")
        if by_name[name] not in chosen:
            chosen.append(by_name[name])
    return chosen


@contextmanager
def sessions(
    contestants: Sequence[Contestant], model: str | None, draft_model: str | None, **options: Any
) -> Iterator[list[SpecSession]]:
    """Open a session for each contestant, in their order, and close them at the end. They share
    nothing but the pages of the model's file."""
    drafts = {None: None, "ngram": "ngram", "model": draft_model}
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                SpecSession(model, drafts[one.drafter], spec_length=one.spec_length, **options)
            )
            for one in contestants
        ]
