"""Statistics in words."""

from __future__ import annotations

from specllama._core import Stats


def in_words(stats: Stats) -> list[str]:
    """Return the result of a generation in two lines for people."""
    shares = [
        f"{name} {accepted} of {drafted} ({accepted / drafted:.0%})"
        for name, (drafted, accepted) in stats.by_drafter.items()
        if drafted > 0
    ]
    return [
        f"{stats.generated_tokens} tokens in {stats.rounds} rounds, "
        f"{stats.tokens_per_round:.2f} per round, {stats.tokens_per_second:.1f} tokens/s",
        f"accepted: {', '.join(shares) or 'nothing was drafted'}",
    ]
