"""The times of a generation, in llama-server's form."""

from __future__ import annotations

from typing import Any

from specllama import Stats


def timings(stats: Stats) -> dict[str, Any]:
    """Return the field `timings` of an answer: tokens, milliseconds and rates."""
    seconds = stats.seconds
    return {
        "cache_n": stats.reused_tokens,
        **_timing("prompt", stats.prompt_tokens - stats.reused_tokens, seconds.prefill),
        **_timing("predicted", stats.generated_tokens, max(seconds.total - seconds.prefill, 0.0)),
        "draft_n": stats.drafted,
        "draft_n_accepted": stats.accepted,
    }


def _timing(what: str, n: int, seconds: float) -> dict[str, float]:
    return {
        f"{what}_n": n,
        f"{what}_ms": 1000 * seconds,
        f"{what}_per_token_ms": 1000 * seconds / max(n, 1),
        f"{what}_per_second": n / seconds if seconds > 0 else 0.0,
    }
