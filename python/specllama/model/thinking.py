"""What a model thinks before it answers, and the texts around it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thinking:
    """The texts around a model's thoughts.

    Attributes:
        opening: The text before a thought; the template may have written it already.
        closing: The text after it; the answer follows.
    """

    opening: str
    closing: str


_KNOWN = (
    Thinking("<think>", "</think>"),
    Thinking("[THINK]", "[/THINK]"),
    Thinking("<seed:think>", "</seed:think>"),
)


def thinking_of(template: str) -> Thinking | None:
    """Return the texts around the thoughts of a model with this chat template; None if the template
    mentions no thoughts. Many templates mention them only to leave out old ones."""
    return next((one for one in _KNOWN if one.closing in template or one.opening in template), None)
