"""Prompts, for runs in which the model makes its own choices."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from specllama.workloads.replay import Replay, load, read_entries

COPY = (Path(__file__).parent / "copy.txt").read_text("utf-8").removesuffix("\n")

FREE = '''\
"""Read settings from a file."""

import os
import re


def read_settings(path):'''

WORKLOADS = {"copy": COPY, "free": FREE}
"""copy: the same function again with one name changed (also the default prompt of spec-cli). free:
nothing to copy; of six tested prompts, the one after which the bundled model repeats itself
least."""

HELD_OUT = ("code", "edit", "prose", "quote")
"""Workloads whose texts were not in the training data of the bundled models."""


def packaged_prompts(workloads: Iterable[str]) -> list[str]:
    """Return the prompts of workloads of the package. The workloads take turns, so the first few
    prompts are of all kinds.

    Args:
        workloads: Keys of `REPLAYED`. Raises ArgumentError for others.
    """
    return [replay.prompt for replay in _in_turns(workloads)]


def longer_prompts(workloads: Iterable[str]) -> list[str]:
    """Return the same prompts, then each again followed by the first half of its reference."""
    replays = list(_in_turns(workloads))
    return [replay.prompt for replay in replays] + [
        replay.prompt + replay.reference[: len(replay.reference) // 2] for replay in replays
    ]


def read_prompts(path: str | os.PathLike[str]) -> list[str]:
    """Read prompts from a file in UTF-8 with one JSON object per line, which has a "prompt".

    Other keys and empty lines are ignored. Raises ArgumentError as `read_jsonl` does.
    """
    return [entry["prompt"] for _, entry in read_entries(path, ("prompt",))]


def _in_turns(workloads: Iterable[str]) -> Iterator[Replay]:
    for turn in itertools.zip_longest(*(load(name) for name in workloads)):
        yield from (replay for replay in turn if replay is not None)
