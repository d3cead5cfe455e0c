"""Rounds over a text with known drafts, timed in units of v(1)."""

from __future__ import annotations

from specllama._core.plan import PlannedRound, Planner
from specllama.simulate.curves import Curve
from specllama.simulate.drafting import MAX_DRAFT, Drafts

_SECOND = 0.05
"""v(1) in seconds for the planner. The value does not change the results."""

_N_PROBES = 10
"""Decodes whose times the planner knows in advance. A session knows them from earlier sessions on
the same machine, because the curve is cached."""


def fixed_time(drafts: Drafts, curve: Curve, n_draft: int) -> float:
    """Return the time of rounds that verify the first `n_draft` tokens of every draft, or the whole
    draft if it is shorter; 0 is plain decoding. As in a session, nothing is drafted for the first
    token."""
    # Single elements of Python lists are faster to read than those of an array.
    length, right, cost = drafts.length.tolist(), drafts.right.tolist(), curve.tolist()
    n = len(drafts)
    time, i = 0.0, 0
    while i < n:
        # The last token of a round is the target's own, so a draft must leave room for it.
        g = min(n_draft, length[i], n - 1 - i) if i > 0 else 0
        time += cost[g]
        i += min(g, right[i]) + 1
    return time


def planned_time(drafts: Drafts, curve: Curve, planner: Planner) -> float:
    """Return the time of rounds in which a planner decides how many tokens are verified. As in a
    session, nothing is drafted for the first token.

    Args:
        drafts: Drafts with evidence.
        curve: Decode times; the planner learns the time of each decode.
        planner: The planner. It keeps its knowledge: texts of the same session share a planner.
    """
    regime = planner.begin(0.0, drafts.n_prompt)
    time, i = 0.0, 0
    while i < len(drafts):
        position = drafts.n_prompt + i
        room = min(MAX_DRAFT, len(drafts) - 1 - i) if i > 0 else 0
        draft = drafts.evidence[i][:room]
        planned = PlannedRound(regime, position, max_draft=room)
        planned.add(draft)
        planner.choose([planned])
        g = planned.choice.n_draft
        accepted = min(g, int(drafts.right[i]))
        cost = float(curve[g])
        planner.observe_decode(g + 1, position, cost * _SECOND)
        planned.on_result(accepted, [min(len(draft), int(drafts.right[i]), accepted + 1)])
        planner.learn(planned)
        time += cost
        i += accepted + 1
    return time


def calibrated_planner(curve: Curve) -> Planner:
    """Return a planner with the points of a curve that a session measures once."""
    planner = Planner()
    for _ in range(_N_PROBES):
        if n := planner.cost.next_probe(MAX_DRAFT + 1):
            planner.cost.observe(n, 0, float(curve[n - 1]) * _SECOND)
    return planner
