"""Statistics in words."""

from __future__ import annotations

from specllama._core import Stats


def in_words(stats: Stats) -> list[str]:
    """Return the statistics of a generation in two readable lines, and a third one with the reason
    if a draft model was not used."""
    shares = [
        f"{name} {accepted} of {drafted} ({accepted / drafted:.0%})"
        for name, (drafted, accepted) in stats.by_drafter.items()
        if drafted > 0
    ]
    return [
        f"{stats.generated_tokens} tokens in {stats.rounds} rounds, "
        f"{stats.tokens_per_round:.2f} per round, {stats.tokens_per_second:.1f} tokens/s",
        f"accepted: {', '.join(shares) or 'nothing was drafted'}",
        *_unused_draft_model(stats),
    ]


def _unused_draft_model(stats: Stats) -> list[str]:
    """Return a line about a draft model that was not used: its cost, and the acceptance rate from
    which it pays."""
    if stats.draft_break_even <= 0 or not stats.decode_seconds or stats.by_drafter["model"][0]:
        return []
    pays = (
        "it is too slow to pay here"
        if stats.draft_break_even > 1
        else f"it pays if more than {stats.draft_break_even:.0%} of its tokens are accepted"
    )
    return [
        f"draft model not used: a draft step takes {1e3 * stats.draft_step_seconds:.3g} ms, plain "
        f"decoding {1e3 * stats.decode_seconds[0]:.3g} ms; {pays}"
    ]
