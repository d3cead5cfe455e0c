"""Sessions with a remote target."""

from __future__ import annotations

from collections.abc import Callable

from prompts import PROMPTS
from specllama import Generation, SpecSession

Connect = Callable[..., SpecSession]
MODULE = PROMPTS["module"]


def same(found: Generation, expected: Generation) -> None:
    """Check that two generations are equal."""
    assert (found.tokens, found.text) == (expected.tokens, expected.text)
    assert found.finish_reason == expected.finish_reason
    assert [(one.token, one.logprob, one.top) for one in found.logprobs] == [
        (one.token, one.logprob, one.top) for one in expected.logprobs
    ]
