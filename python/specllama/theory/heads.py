"""The gain of drafts by the target's own layers, for three ways to make these drafts."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specllama.errors import ArgumentError
from specllama.theory.decode_times import DecodeTimesLike
from specllama.theory.measured import speeds

Drafts = Literal["in turn", "at once", "itself"]


def speedup_of_heads(
    acceptance: ArrayLike,
    v: DecodeTimesLike,
    draft_step: float = 0.0,
    drafts: Drafts = "in turn",
) -> NDArray[np.float64]:
    """The speed relative to plain decoding for every length of the draft: Theorem 3.8 with
    v(gamma + 1) instead of v(1), and with a drafting cost that depends on `drafts`.

    Args:
        acceptance: a_1, a_2, ...: the probability that a token is accepted if those before it are,
            shape [n_draft]. Tokens drafted independently of each other ("at once", "itself") are
            right less often at later positions.
        v: Times of a target decode, as for `speeds`; an array must reach n_draft + 1 tokens.
        draft_step: Time d of one pass of the head; unused for "itself".
        drafts: How a draft of gamma tokens is made; A tokens of it are accepted. "in turn": a pass
            for each token; a round takes gamma d + v(gamma + 1) for 1 + A tokens (EAGLE: Li et al.
            2024; multi-token prediction: DeepSeek-V3, 2024). "at once": one pass for all; d +
            v(gamma + 1) for 1 + A tokens (blockwise parallel decoding: Stern et al. 2018; Medusa,
            along one branch: Cai et al. 2024). "itself": the target generates one token and drafts
            gamma tokens with look-ahead tokens, then verifies; 2 v(gamma + 1) for 2 + A tokens
            (PaSS: Monea et al. 2023).

    Returns:
        Values for gamma = 0 (plain decoding: 1) to n_draft, shape [n_draft + 1].

    Raises:
        ArgumentError: As for `speeds`; or `drafts` is not one of these words.
    """
    if drafts not in get_args(Drafts):
        raise ArgumentError(f"drafts must be one of {', '.join(get_args(Drafts))}, not {drafts!r}.")
    in_turn = speeds(acceptance, v, draft_step)
    free = speeds(acceptance, v)  # tokens by v(gamma + 1)
    if drafts == "in turn":
        return np.asarray(in_turn / in_turn[0])
    tokens = 1 + np.concatenate([[0.0], np.cumsum(np.cumprod(np.asarray(acceptance, float)))])
    times = tokens / free
    gain = (
        tokens[1:] / (times[1:] + draft_step)
        if drafts == "at once"
        else (1 + tokens[1:]) / (2 * times[1:])
    )
    return np.concatenate([[1.0], gain / free[0]])
