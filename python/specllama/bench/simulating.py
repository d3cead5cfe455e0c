"""Simulates the planner and fixed draft lengths, with our drafter and those of other projects."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from specllama.bench.contestants import FIXED
from specllama.bench.workload import Workload
from specllama.errors import ArgumentError
from specllama.session import SpecSession
from specllama.simulate import (
    Curve,
    Drafts,
    calibrated_planner,
    fixed_time,
    lookup_drafts,
    ngram_drafts,
    ngram_map_drafts,
    ngram_simple_drafts,
    planned_time,
)
from specllama.theory import oracle_bound

# Tokens to look for, and tokens to draft. llama-cpp-python's defaults are 2 and 10, and it
# recommends drafts of 2 on CPUs; the defaults of llama.cpp's n-grams are 12 and 48.
_PEERS = {
    "lookup": (lookup_drafts, (2, 3, 12), (2, 4, 8, 10, 16, 32, 48)),
    "simple": (ngram_simple_drafts, (12,), (16, 32, 48)),  # it makes no drafts below 12 tokens
    "map": (ngram_map_drafts, (12,), (2, 4, 8, 16, 32, 48)),
}


@dataclass(frozen=True)
class Simulation:
    """A workload on a machine; every speed is relative to plain decoding.

    Attributes:
        curve: Name of the machine.
        workload: Name of the workload.
        ngram: Speed with the planner and the n-gram drafter's drafts.
        fixed: Speeds of the same drafter with drafts of a fixed length, by name.
        peers: Speeds of other projects' drafters, by name: "lookup-S-N" looks for S tokens and
            drafts N. "lookup" is llama-cpp-python's prompt lookup; "simple" and "map" are
            llama.cpp's ngram-simple and ngram-map-k.
        oracle: Speed of a planner that knows which tokens will be accepted.
    """

    curve: str
    workload: str
    ngram: float
    fixed: dict[str, float]
    peers: dict[str, float]
    oracle: float

    @property
    def bound_share(self) -> float:
        """Share of the oracle's speed that the planner reaches."""
        return self.ngram / self.oracle


@dataclass(frozen=True)
class _Drafted:
    """The drafts of every drafter for the texts of a workload."""

    name: str
    ngram: list[Drafts]
    peers: dict[str, tuple[int, list[Drafts]]]
    """The length of drafts and the drafts, by name of the setting."""


def simulate(
    workloads: Sequence[Workload],
    curves: Mapping[str, Curve],
    session: SpecSession,
    n_tokens: int,
) -> list[Simulation]:
    """Run the replayed workloads on every machine.

    At the start of each workload, the planner knows the curve, as a session would have measured it,
    but nothing about the texts. Drafting takes no time.

    Args:
        workloads: The workloads; only replayed ones are used.
        curves: The curves of the machines, by name.
        session: Session of the model whose vocabulary is used.
        n_tokens: Maximum number of tokens of each text.

    Raises:
        ArgumentError: No workload is replayed.
    """
    drafted = [_draft(one, session, n_tokens) for one in workloads if one.kind == "replayed"]
    if not drafted:
        raise ArgumentError("Only replayed workloads can be simulated; choose one (--workload).")
    return [
        _simulate(name, curve, workload) for name, curve in curves.items() for workload in drafted
    ]


def geometric_mean(simulations: Sequence[Simulation]) -> Simulation:
    """Return the geometric means over the workloads of one machine."""
    mean = statistics.geometric_mean
    first = simulations[0]
    return Simulation(
        curve=first.curve,
        workload="mean",
        ngram=mean(one.ngram for one in simulations),
        fixed={name: mean(one.fixed[name] for one in simulations) for name in first.fixed},
        peers={name: mean(one.peers[name] for one in simulations) for name in first.peers},
        oracle=mean(one.oracle for one in simulations),
    )


def _draft(workload: Workload, session: SpecSession, n_tokens: int) -> _Drafted:
    texts = [
        (
            task.prompt_tokens(session),
            session.tokenize(task.reference, add_special=False)[:n_tokens],
        )
        for task in workload.tasks
        if task.reference is not None
    ]
    return _Drafted(
        name=workload.name,
        ngram=[ngram_drafts(*text) for text in texts],
        peers={
            f"{name}-{size}-{n}": (n, [draft(*text, ngram_size=size, n_draft=n) for text in texts])
            for name, (draft, sizes, lengths) in _PEERS.items()
            for size in sizes
            for n in lengths
        },
    )


def _simulate(name: str, curve: Curve, drafted: _Drafted) -> Simulation:
    n_tokens = sum(map(len, drafted.ngram))
    planner = calibrated_planner(curve)

    def speed(time: Callable[[Drafts], float], drafts: Sequence[Drafts]) -> float:
        return n_tokens / sum(map(time, drafts))

    def fixed_speed(drafts: Sequence[Drafts], n_draft: int) -> float:
        return speed(lambda one: fixed_time(one, curve, n_draft), drafts)

    return Simulation(
        curve=name,
        workload=drafted.name,
        ngram=speed(lambda one: planned_time(one, curve, planner), drafted.ngram),
        fixed={f"ngram-{n}": fixed_speed(drafted.ngram, n) for n in FIXED},
        peers={name: fixed_speed(drafts, n) for name, (n, drafts) in drafted.peers.items()},
        oracle=speed(lambda one: oracle_bound(one.right, curve).time, drafted.ngram),
    )
