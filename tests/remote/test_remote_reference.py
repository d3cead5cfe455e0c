"""A reference text for a target on a server."""

from __future__ import annotations

from typing import Any

from prompts import PROMPTS
from serving import serve
from session_options import EXACT, EXACT_HERE, FIXED
from specllama import SpecSession

N = 40
TRIES = 5
OPTIONS: dict[str, Any] = {"max_tokens": N, "temperature": 1.0, "seed": 5}


def test_a_reference_of_any_length_is_drafted_from() -> None:
    """Even if it has 300,000 tokens. The number of drafts depends on the clock, so only the best of
    several attempts must be good."""
    prompt = PROMPTS["function"]
    with SpecSession(draft=None, **EXACT, exact=EXACT_HERE) as local:
        expected = local.generate(prompt, **OPTIONS)
    options = EXACT | FIXED | {"exact": EXACT_HERE, "verifies": True}
    with (
        SpecSession(None, "ngram", **options) as session,
        serve(session) as server,
        SpecSession(target=server.url) as remote,
    ):
        accepted = []
        for reference in ([], expected.tokens, [*([5] * 300_000), *expected.tokens]):
            tries = [
                remote.generate(prompt, reference=reference, **OPTIONS)
                for _ in range(TRIES if reference else 1)
            ]
            for found in tries:
                assert (found.tokens, found.text) == (expected.tokens, expected.text)
            accepted.append(max(found.stats.accepted for found in tries))
    without, short, long = accepted
    assert min(short, long) > max(without, N // 2)
