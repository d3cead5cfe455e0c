"""What the fuzz tests share: how many cases a run tries, and a generator of its own for each."""

from __future__ import annotations

import random
from typing import Any

import pytest

SECONDS = 5.0
"""A case that takes longer hangs."""


def sizes(n: int) -> list[Any]:
    """Return pytest's parameters for `n_cases`: a tenth of `n` in every run, all in a slow one."""
    return [n // 10, pytest.param(n, marks=pytest.mark.slow)]


def case(name: str, index: int) -> random.Random:
    """Return the generator of case `index` of the fuzz called `name`: the same in every run."""
    return random.Random(f"{name} {index}")
