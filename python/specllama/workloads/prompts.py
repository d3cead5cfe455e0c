"""Prompts alone: where what follows is the model's own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator

from specllama.workloads.replay import Replay, load, read_entries

HELD_OUT = ("code", "edit", "prose", "quote")
"""Workloads whose text the bundled models were not trained on."""


def packaged_prompts(workloads: Iterable[str]) -> list[str]:
    """Return the prompts of workloads that come with the package, taking turns among them, so that
    the first few are of all kinds.

    Args:
        workloads: Keys of `REPLAYED`. Raises ArgumentError for others.
    """
    return [replay.prompt for replay in _in_turns(workloads)]


def longer_prompts(workloads: Iterable[str]) -> list[str]:
    """The same, and then each again with the first half of what follows it."""
    replays = list(_in_turns(workloads))
    return [replay.prompt for replay in replays] + [
        replay.prompt + replay.reference[: len(replay.reference) // 2] for replay in replays
    ]


def read_prompts(path: str | os.PathLike[str]) -> list[str]:
    """Read prompts from a file in UTF-8, one JSON object with a "prompt" a line.

    Other keys and empty lines are ignored. Raises ArgumentError as `read_jsonl` does.
    """
    return [entry["prompt"] for _, entry in read_entries(path, ("prompt",))]


def _in_turns(workloads: Iterable[str]) -> Iterator[Replay]:
    for turn in itertools.zip_longest(*(load(name) for name in workloads)):
        yield from (replay for replay in turn if replay is not None)
