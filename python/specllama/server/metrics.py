"""Counters in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from threading import Lock

from specllama import ArgumentError, ClosedError, Generation, Handle, SpecllamaError
from specllama._core import Source
from specllama.requests.queue_load import QueueLoad

_DRAFTERS = tuple(source.name for source in Source)
_OUTCOMES = ("stop", "length", "cancelled", "failed", "refused")


class Metrics:
    """Counts requests, by outcome, and their tokens since the server started."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._outcomes = Counter(dict.fromkeys(_OUTCOMES, 0))
        self._tokens: Counter[str] = Counter()
        self._drafted = Counter(dict.fromkeys(_DRAFTERS, 0))
        self._accepted = Counter(dict.fromkeys(_DRAFTERS, 0))
        self._drafted_at: Counter[str] = Counter()  # by position in the draft
        self._accepted_at: Counter[str] = Counter()

    def refuse(self) -> None:
        """Count a request that was refused because the queue was full."""
        with self._lock:
            self._outcomes["refused"] += 1

    def count(self, handle: Handle) -> None:
        """Count a request that has ended. Invalid requests are not counted, even if they fail only
        when they begin."""
        generation = handle.so_far()
        outcome: str
        try:
            outcome = handle.result().finish_reason or "cancelled"
        except ClosedError:  # ended before it began
            outcome = "cancelled"
        except ArgumentError:
            return
        except SpecllamaError:
            outcome = "failed"
        self.count_outcome(outcome)
        if generation is not None:
            self._count_tokens(generation, opens=True)

    def count_outcome(self, outcome: str) -> None:
        """Count how a request ended."""
        with self._lock:
            self._outcomes[outcome] += 1

    def count_round(self, generation: Generation, opens: bool) -> None:
        """Count a round of a remote generation. opens: whether it is the first round, which reads
        the prompt."""
        if generation.finish_reason is not None:
            self.count_outcome(generation.finish_reason)
        self._count_tokens(generation, opens=opens)

    def _count_tokens(self, generation: Generation, *, opens: bool) -> None:
        stats = generation.stats
        with self._lock:
            if opens:
                self._tokens["prompt"] += stats.prompt_tokens
                self._tokens["reused"] += stats.reused_tokens
            for drafter, (drafted, accepted) in stats.by_drafter.items():
                self._drafted[drafter] += drafted
                self._accepted[drafter] += accepted
            for i, n in enumerate(stats.drafted_by_position):
                self._drafted_at[str(i)] += n
            for i, n in enumerate(stats.accepted_by_position):
                self._accepted_at[str(i)] += n

    def text(self, load: QueueLoad) -> str:
        """Return all metrics, including the session's load, as text."""
        with self._lock:
            return "".join(self._lines(load))

    def _lines(self, load: QueueLoad) -> Iterator[str]:
        yield from _metric("requests_waiting", "gauge", "Requests in the queue.", load.n_waiting)
        yield from _metric("requests_running", "gauge", "Requests in progress.", load.n_running)
        yield from _metric(
            "requests_total", "counter", "Requests by outcome.", self._outcomes, "outcome"
        )
        yield from _metric(
            "prompt_tokens_total", "counter", "Prompt tokens.", self._tokens["prompt"]
        )
        yield from _metric(
            "reused_tokens_total",
            "counter",
            "Prompt tokens that were reused, not decoded again.",
            self._tokens["reused"],
        )
        yield from _metric(
            "generated_tokens_total", "counter", "Tokens generated.", load.generated_tokens
        )
        yield from _metric(
            "tokens_per_second",
            "gauge",
            "Tokens per second of recent work, all requests together.",
            load.tokens_per_second,
        )
        yield from _metric(
            "drafted_tokens_total", "counter", "Tokens drafted.", self._drafted, "drafter"
        )
        yield from _metric(
            "accepted_tokens_total",
            "counter",
            "Drafted tokens that the model accepted.",
            self._accepted,
            "drafter",
        )
        yield from _metric(
            "drafted_tokens_by_position_total",
            "counter",
            "Tokens drafted, by position in the draft, from 0.",
            self._drafted_at,
            "position",
        )
        yield from _metric(
            "accepted_tokens_by_position_total",
            "counter",
            "Drafted tokens that the model accepted, by position in the draft, from 0.",
            self._accepted_at,
            "position",
        )
        rates = {
            drafter: self._accepted[drafter] / n for drafter, n in self._drafted.items() if n > 0
        }
        yield from _metric(
            "acceptance_rate",
            "gauge",
            "Accepted tokens divided by drafted tokens.",
            rates,
            "drafter",
        )


def _metric(
    name: str, kind: str, meaning: str, value: float | Mapping[str, float], label: str = ""
) -> Iterator[str]:
    yield f"# HELP specllama_{name} {meaning}\n# TYPE specllama_{name} {kind}\n"
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield f'specllama_{name}{{{label}="{key}"}} {one}\n'
    else:
        yield f"specllama_{name} {value}\n"
