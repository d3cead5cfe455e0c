"""Token by token comparison that lets rounding decide between two candidates that nearly tie."""

from __future__ import annotations

from reference_sampler import noise
from specllama import Generation
from specllama.measure.sequences import first_difference


def tie(plain: Generation, tokens: list[int], temperature: float = 0.0) -> float | None:
    """Return how far the first differing token was from being chosen by the plain run, in nats of
    the model's log-probabilities; None if no token differs.

    At a temperature the choice is the argmax of log-probability / T + noise: what counts is the
    distance of these sums, times T.

    Args:
        plain: With log-probabilities, of enough candidates to have the other one among them.
        tokens: Of the other run, with the same seed.
        temperature: Of both.
    """
    first = first_difference(plain.tokens, tokens)
    if first is None:
        return None
    assert first < min(len(plain.tokens), len(tokens)), "one of them ended"
    there = plain.logprobs[first]
    assert there.token == plain.tokens[first]
    other = tokens[first]
    likeliest = dict(there.top)
    assert other in likeliest, f"token {other} is not among the {len(there.top)} likeliest"
    distance = there.logprob - likeliest[other]
    if temperature > 0:
        position = plain.stats.prompt_tokens + first
        gumbel = noise(plain.stats.seed, position, max(there.token, other) + 1)
        distance += temperature * float(gumbel[there.token] - gumbel[other])
        assert distance >= -1e-4, "the plain run chose what was not its best"
    return abs(distance)
