"""Texts to replay: a prompt and what follows it, whatever the model would have said."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specllama import _check
from specllama.errors import ArgumentError

REPLAYED = {
    "edit": "functions written again with a variable renamed, an argument added, a constant "
    "changed or type hints added",
    "quote": "questions about a document, answered with passages of it",
    "code": "functions written from their signature and docstring",
    "json": "lists of records that go on after a schema and the first ones",
    "prose": "free prose",
}
"""The workloads that come with the package, and what they are; README.md beside this file says
more. edit and quote copy much of their prompts, json its keys, code and prose next to nothing."""

_FIELDS = ("prompt", "reference", "name", "workload")


@dataclass(frozen=True)
class Replay:
    """One text to replay.

    Attributes:
        prompt: What is prefilled.
        reference: What is generated after it, token by token. Prompt and reference are one text:
            nothing belongs between them.
        name: What it is called in results.
        workload: The workload it belongs to.
    """

    prompt: str
    reference: str
    name: str
    workload: str


def load(name: str) -> list[Replay]:
    """Return the texts of a workload that comes with the package, always in the same order.

    Args:
        name: A key of `REPLAYED`.

    Raises:
        ArgumentError: There is no workload of that name.
    """
    if name not in REPLAYED:
        known = ", ".join(REPLAYED)
        raise ArgumentError(f"There is no workload {name!r} to replay; there are: {known}.")
    return read_jsonl(Path(__file__).parent / f"{name}.jsonl")


def read_jsonl(path: str | os.PathLike[str]) -> list[Replay]:
    """Read texts to replay from a file in UTF-8, one JSON object a line.

    "prompt" and "reference" are required. "workload" is the file's name without its ending if it is
    missing, "name" that and the number of the line. Empty lines and other keys are ignored.

    Raises:
        ArgumentError: The file cannot be read, a line is no such object (the sentence has its
            number), or there is no text in the file.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ArgumentError(f"Cannot read {path}: {error.strerror}.") from None
    except ValueError:  # a NUL in the name
        raise ArgumentError(f"Cannot read {str(path)!r}: it is no file name.") from None
    replays = [
        _parse(line, path, number)
        for number, line in enumerate(data.split(b"\n"), start=1)
        if line.strip()
    ]
    if not replays:
        raise ArgumentError(f"{path} holds no text to replay.")
    return replays


def _parse(line: bytes, path: Path, number: int) -> Replay:
    place = f"{path}, line {number}"
    try:
        entry: Any = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ArgumentError(f"{place} is not UTF-8.") from None
    except (ValueError, RecursionError):
        raise ArgumentError(f"{place} is not JSON.") from None
    if not isinstance(entry, dict):
        raise ArgumentError(f'{place} must be an object with "prompt" and "reference".')
    fields = {"name": f"{path.stem} {number}", "workload": path.stem, **entry}
    for key in _FIELDS:
        if key not in fields:
            raise ArgumentError(f'{place} has no "{key}".')
        _check.text(f'{place}: "{key}"', fields[key])
    if not fields["reference"]:
        raise ArgumentError(f'{place}: "reference" must not be empty.')
    return Replay(**{key: fields[key] for key in _FIELDS})
