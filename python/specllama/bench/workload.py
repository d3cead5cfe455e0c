"""What is run: texts that are replayed, and prompts that the model continues as it likes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from specllama.errors import ArgumentError
from specllama.workloads import FREE, REPLAYED, WORKLOADS, Replay, load, read_jsonl


@dataclass(frozen=True)
class Task:
    """One text to replay, or one prompt to continue.

    Attributes:
        prompt: What is prefilled.
        reference: What is replayed after it; None: the model chooses.
        temperature: Of a generated text.
        seed: Of a generated text.
    """

    prompt: str
    reference: str | None = None
    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Workload:
    """Tasks of one kind, measured together.

    Attributes:
        name: What it is called in results.
        kind: "replayed": the choices are those of a given text, whatever the model. "generated":
            the model's own.
        tasks: At least one.
    """

    name: str
    kind: Literal["replayed", "generated"]
    tasks: Sequence[Task]


GENERATED = ("code", *WORKLOADS, "adversarial")
"""code: the prompts of the replayed code. adversarial: free at temperature 1.5, where hardly a
token can be foreseen: speculation has nothing to win there, and must lose nothing."""

_KNOWN = (*(("replayed", name) for name in REPLAYED), *(("generated", name) for name in GENERATED))

NAMES = tuple(dict.fromkeys(name for _, name in _KNOWN))
"""What `choose` knows; also, with its kind before it, "generated-code", which is one of two."""


def choose(names: str | None, path: str | os.PathLike[str] | None, n_texts: int) -> list[Workload]:
    """Return the workloads that the command line asks for.

    Args:
        names: "all", or names separated by commas: "code" is both, the replayed and the generated,
            "generated-code" one of them. None is "all", or nothing if there is a path.
        path: A file of texts to replay, by `specllama.workloads.read_jsonl`.
        n_texts: Most texts, or seeds, of each.

    Raises:
        ArgumentError: There is no such workload, or the file is wrong.
    """
    workloads = [] if path is None else _of_file(read_jsonl(path), n_texts)
    if names is None:
        names = "all" if path is None else ""
    for wanted in filter(None, names.split(",")):
        meant = [one for one in _KNOWN if wanted in ("all", one[1], "-".join(one))]
        if not meant:
            raise ArgumentError(f"There is no workload {wanted!r}; there are: {', '.join(NAMES)}.")
        workloads += [
            _replayed(name, load(name)[:n_texts])
            if kind == "replayed"
            else _generated(name, n_texts)
            for kind, name in meant
        ]
    if not workloads:
        raise ArgumentError("--workload names no workload.")
    return workloads


def _of_file(replays: Sequence[Replay], n_texts: int) -> list[Workload]:
    by_name: dict[str, list[Replay]] = {}
    for replay in replays:
        by_name.setdefault(replay.workload, []).append(replay)
    return [_replayed(name, texts[:n_texts]) for name, texts in by_name.items()]


def _replayed(name: str, replays: Sequence[Replay]) -> Workload:
    return Workload(name, "replayed", [Task(one.prompt, one.reference) for one in replays])


def _generated(name: str, n_texts: int) -> Workload:
    if name == "code":
        tasks = [Task(replay.prompt) for replay in load(name)[:n_texts]]
    elif name == "adversarial":
        tasks = [Task(FREE, temperature=1.5, seed=seed) for seed in range(n_texts)]
    else:
        tasks = [Task(WORKLOADS[name])]
    return Workload(name, "generated", tasks)
