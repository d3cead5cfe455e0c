"""The times of a generation, in llama-server's format."""

from __future__ import annotations

from typing import Any

from specllama import Stats


def timings(stats: Stats, *, alone: bool) -> dict[str, Any]:
    """Return the field `timings` of an answer: tokens, milliseconds and rates. llama-server does
    not have `predicted_rounds_n` (decodes by the target), `id_slot` and `speedup` (see `_speedup`).

    Args:
        stats: The statistics of the generation.
        alone: Whether no other generation is running.
    """
    seconds = stats.seconds
    speedup = _speedup(stats) if alone else None
    return {
        "cache_n": stats.reused_tokens,
        **_timing("prompt", stats.prompt_tokens - stats.reused_tokens, seconds.prefill),
        **_timing("predicted", stats.generated_tokens, max(seconds.total - seconds.prefill, 0.0)),
        "draft_n": stats.drafted,
        "draft_n_accepted": stats.accepted,
        "predicted_rounds_n": stats.rounds,
        "id_slot": stats.slot,
        **({} if speedup is None else {"speedup": speedup}),
    }


def _speedup(stats: Stats) -> float | None:
    """Return the speed of a generation divided by its speed without drafts, when every token takes
    a decode of one token. None if such a decode was not measured. It is measured with an empty
    context, so after a long prompt the true value is larger."""
    decodes = stats.decode_seconds
    if not decodes or decodes[0] <= 0 or stats.tokens_per_second <= 0:
        return None
    return decodes[0] * stats.tokens_per_second


def _timing(what: str, n: int, seconds: float) -> dict[str, float]:
    return {
        f"{what}_n": n,
        f"{what}_ms": 1000 * seconds,
        f"{what}_per_token_ms": 1000 * seconds / max(n, 1),
        f"{what}_per_second": n / seconds if seconds > 0 else 0.0,
    }
