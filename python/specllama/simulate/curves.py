"""Cost curves of machines."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from specllama import _check, _files
from specllama.errors import ArgumentError
from specllama.simulate.drafting import MAX_DRAFT
from specllama.theory import DecodeTimes

Curve: TypeAlias = NDArray[np.float64]
"""[n - 1]: v(n) / v(1), the time of a decode of n tokens relative to one token; shape
[MAX_DRAFT + 1]. From `DecodeTimes.ratios`."""


def curve_of(points: Mapping[int, float]) -> Curve:
    """Return a curve through points at some n, including 1. It is linear between points; beyond the
    last point it continues with the slope between the last two, or level if that is negative."""
    return DecodeTimes.through(points, MAX_DRAFT + 1).ratios


def read_curves(path: str | os.PathLike[str]) -> dict[str, Curve]:
    """Read curves from a JSON file: {"name": {"1": 1.0, "2": 1.24, ...}, ...}. Each curve has times
    of decodes of n tokens, in any unit, at some n, including 1. A value that is not an object, such
    as a comment, is ignored.

    Raises:
        ArgumentError: The file cannot be read, is not such an object, or has no curve.
    """
    data = _files.read(path)
    try:
        content: Any = json.loads(data)
    except (ValueError, RecursionError):  # not JSON, or not UTF-8
        raise ArgumentError(f"{path} is not JSON.") from None
    if not isinstance(content, dict):
        raise ArgumentError(f"{path} must be a JSON object of curves.")
    curves = {
        name: curve_of(_points(f"{path}: {name}", points))
        for name, points in content.items()
        if isinstance(points, dict)
    }
    if not curves:
        raise ArgumentError(f"{path} has no curve; add one.")
    return curves


def _points(name: str, points: dict[str, Any]) -> dict[int, float]:
    known = {}
    for key, value in points.items():
        if not (key.isascii() and key.isdigit() and len(key) < 5 and int(key) > 0):
            raise ArgumentError(f"{name}: {key!r} is not a number of tokens.")
        time = _check.number(f"{name}: the time of {key} tokens", value)
        if not 0 < time < math.inf:
            raise ArgumentError(f"{name}: the time of {key} tokens must be positive, not {time}.")
        known[int(key)] = time
    if 1 not in known:
        raise ArgumentError(f'{name} must have the time of "1" token.')
    return known
