"""What a model thinks before it answers: the texts around it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thinking:
    """The texts around what a model thinks.

    Attributes:
        opening: Before it; the template may have written that already.
        closing: Behind it; the answer follows.
    """

    opening: str
    closing: str


_KNOWN = (
    Thinking("<think>", "</think>"),
    Thinking("[THINK]", "[/THINK]"),
    Thinking("<seed:think>", "</seed:think>"),
)


def thinking_of(template: str) -> Thinking | None:
    """Return what stands around thoughts in the texts of a model with such a chat template; None
    where it speaks of none. Many templates do that only to leave old ones out."""
    return next((one for one in _KNOWN if one.closing in template or one.opening in template), None)
