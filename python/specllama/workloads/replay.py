"""Texts to replay: a prompt and a given text after it."""

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
    "json": "lists of records, after a schema and the first records",
    "prose": "free prose",
}
"""The workloads of the package, with descriptions; README.md in this folder has more. edit and
quote copy much of their prompts, json copies its keys, code and prose copy almost nothing."""

_FIELDS = ("prompt", "reference", "name", "workload")


@dataclass(frozen=True)
class Replay:
    """A text to replay.

    Attributes:
        prompt: The text to prefill.
        reference: The text to generate after it, token by token. Both together are one text, with
            nothing between them.
        name: Its name in results.
        workload: The workload it belongs to.
    """

    prompt: str
    reference: str
    name: str
    workload: str


def load(name: str) -> list[Replay]:
    """Return the texts of a workload of the package, always in the same order.

    Args:
        name: A key of `REPLAYED`.

    Raises:
        ArgumentError: The workload does not exist.
    """
    if name not in REPLAYED:
        known = ", ".join(REPLAYED)
        raise ArgumentError(
            f"There is no replayed workload {_check.quoted(name)}; choose one of {known}."
        )
    return read_jsonl(Path(__file__).parent / f"{name}.jsonl")


def read_jsonl(path: str | os.PathLike[str]) -> list[Replay]:
    """Read texts to replay from a file in UTF-8 with one JSON object per line.

    "prompt" and "reference" are required. The default of "workload" is the file's name without its
    ending, and that of "name" is the same with the line number. Empty lines and other keys are
    ignored.

    Raises:
        ArgumentError: The file cannot be read, a line is not such an object (the message has its
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
        ArgumentError: As for `read_jsonl`.
    """
    entries = [
        (number, _parse(line, f"{path}, line {number}", required))
        for number, line in enumerate(_files.read(path).split(b"\n"), start=1)
        if line.strip()
    ]
    if not entries:
        raise ArgumentError(f"{path} has no text; give at least one line.")
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
