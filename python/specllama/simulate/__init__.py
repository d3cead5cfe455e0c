"""Simulates speculative decoding: real texts, real drafters and the real planner, with the decode
times of any machine. No model decodes anything.

A draft depends only on the tokens before it, not on the rounds that led there. So the drafts of a
text are made once (`drafting`), and rounds over them (`rounds`) only add up times: a round that
verifies g tokens takes v(g + 1), the time of a decode of g + 1 tokens, relative to v(1)
(`curves`).
"""

from __future__ import annotations

from specllama.simulate.curves import Curve, curve_of, read_curves
from specllama.simulate.drafting import (
    MAX_DRAFT,
    Drafts,
    lookup_drafts,
    ngram_drafts,
    ngram_map_drafts,
    ngram_simple_drafts,
)
from specllama.simulate.rounds import calibrated_planner, fixed_time, planned_time

__all__ = [
    "MAX_DRAFT",
    "Curve",
    "Drafts",
    "calibrated_planner",
    "curve_of",
    "fixed_time",
    "lookup_drafts",
    "ngram_drafts",
    "ngram_map_drafts",
    "ngram_simple_drafts",
    "planned_time",
    "read_curves",
]
