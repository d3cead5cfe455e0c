"""Texts to replay: a prompt and the text after it, whatever the model would have generated."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specllama import _check, _files
from specllama.errors import ArgumentError

REPLAYED = {
    "edit": "functions written again with a variable renamed, an argument added, a constant "
    "changed or type hints added",
    "quote": "questions about a document, answered with passages of it",
    "code": "functions written from their signature and docstring",
    "json": "lists of records that go on after a schema and the first ones",
    "prose": "free prose",
}
"""The workloads that come with the package, and what they are; for more, see README.md beside this
file. edit and quote copy much of their prompts, json its keys, code and prose next to nothing."""

_FIELDS = ("prompt", "reference", "name", "workload")


@dataclass(frozen=True)
class Replay:
    """One text to replay.

    Attributes:
        prompt: What is prefilled.
        reference: What is generated after it, token by token. Prompt and reference together are one
            text, with nothing between them.
        name: Its name in results.
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
        raise ArgumentError(
            f"There is no workload {_check.quoted(name)} to replay; there are: {known}."
        )
    return read_jsonl(Path(__file__).parent / f"{name}.jsonl")


def read_jsonl(path: str | os.PathLike[str]) -> list[Replay]:
    """Read texts to replay from a file in UTF-8 with one JSON object per line.

    "prompt" and "reference" are required. A missing "workload" is the file's name without its
    ending; a missing "name" is that and the line number. Empty lines and other keys are ignored.

    Raises:
        ArgumentError: The file cannot be read, a line is no such object (the message has its
            number), or the file has no text.
    """
    path = Path(path)
    replays = []
    for number, entry in read_entries(path, ("prompt", "reference")):
        fields = {"name": f"{path.stem} {number}", "workload": path.stem, **entry}
        place = f"{path}, line {number}"
        for key in ("name", "workload"):
            _check.text(f'{place}: "{key}"', fields[key])
        if not fields["reference"]:
            raise ArgumentError(f'{place}: "reference" must not be empty.')
        replays.append(Replay(**{key: fields[key] for key in _FIELDS}))
    return replays


def read_entries(
    path: str | os.PathLike[str], required: Sequence[str]
) -> list[tuple[int, dict[str, Any]]]:
    """Read a file in UTF-8 with one JSON object per line, each with texts under the required keys.

    Returns:
        Line numbers, from 1, and their objects; empty lines are left out.

    Raises:
        ArgumentError: As `read_jsonl` does.
    """
    entries = [
        (number, _parse(line, f"{path}, line {number}", required))
        for number, line in enumerate(_files.read(path).split(b"\n"), start=1)
        if line.strip()
    ]
    if not entries:
        raise ArgumentError(f"{path} holds no text.")
    return entries


def _parse(line: bytes, place: str, required: Sequence[str]) -> dict[str, Any]:
    try:
        entry: Any = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ArgumentError(f"{place} is not UTF-8.") from None
    except (ValueError, RecursionError):
        raise ArgumentError(f"{place} is not JSON.") from None
    if not isinstance(entry, dict):
        keys = " and ".join(f'"{key}"' for key in required)
        raise ArgumentError(f"{place} must be an object with {keys}.")
    for key in required:
        if key not in entry:
            raise ArgumentError(f'{place} has no "{key}".')
        _check.text(f'{place}: "{key}"', entry[key])
    return entry
