"""JSON that no right server sends."""

from __future__ import annotations

import json
import random
from typing import Any

VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 3, 40, 64, 65, 10**9, 2**31, 2**63, 10**30, 1e9, 0.5, -0.5,
    1e308, float("nan"), float("inf"), float("-inf"), "", "x", "stop", "\ud800", "\0", "9" * 5000,
    "A" * 200_000, [], [[]], [-1], [10**9], [None], ["x"], [0] * 5000, {}, {"x": 1}, [[1, 2, 3]],
]  # fmt: skip


def mutated(answer: Any, draws: random.Random) -> Any:
    """Return an answer with one to three of its values replaced, dropped or repeated."""
    answer = json.loads(json.dumps(answer))
    for _ in range(draws.choice([1, 1, 1, 2, 3])):
        at = answer
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                break
            key = draws.choice(keys)
            if isinstance(at[key], (dict, list)) and at[key] and draws.random() < 0.6:
                at = at[key]
                continue
            how = draws.random()
            if how < 0.15:
                del at[key]
            elif how < 0.25 and isinstance(at, list):
                at += [at[key]] * draws.choice([1, 2, 100, 5000])
            else:
                at[key] = draws.choice(VALUES)
            break
    return answer
