"""Beam search over any model's logits by the rules of Hugging Face's transformers: whole texts in
lists, decoded again at each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from specllama import Beam

Logits = Callable[[list[int]], NDArray[np.floating[Any]]]
Text = tuple[list[int], float]


def log_softmax(logits: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    shifted = logits.astype(np.float64) - logits.max()
    result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
    return result


def beam_search(
    logits_after: Logits,
    prompt: list[int],
    eos: int,
    *,
    n_beams: int,
    max_tokens: int,
    length_penalty: float = 1.0,
    early_stopping: bool | str = False,
) -> list[Text]:
    """Return tokens without a final eos, and scores; the best first."""
    running: list[Text] = [([], 0.0)]
    done: list[tuple[float, list[int]]] = []
    for length in range(1, max_tokens + 1):
        following = []
        for tokens, total in running:
            logprobs = log_softmax(logits_after(prompt + tokens))
            for token in np.argsort(-logprobs, kind="stable")[: 2 * n_beams]:
                following.append(([*tokens, int(token)], total + float(logprobs[token])))
        following.sort(key=lambda text: -text[1])
        for tokens, total in following[:n_beams]:
            if tokens[-1] == eos or length == max_tokens:
                done.append((total / length**length_penalty, tokens))
        done = sorted(done, key=lambda text: -text[0])[:n_beams]
        running = [text for text in following if text[0][-1] != eos][:n_beams]
        if len(done) < n_beams:
            continue
        grows = early_stopping == "never" and length_penalty > 0
        best = running[0][1] / (max_tokens if grows else length) ** length_penalty
        if early_stopping is True or best <= done[-1][0]:
            break
    return [([token for token in tokens if token != eos], score) for score, tokens in done]


def found(beams: list[Beam]) -> list[tuple[list[int], float, float]]:
    """Return the results of a search for a bit-exact comparison."""
    return [(beam.tokens, beam.score, beam.logprob) for beam in beams]
