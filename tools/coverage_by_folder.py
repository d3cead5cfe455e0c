"""Print the share of lines that the tests run, by folder, from coverage.py and gcovr reports."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any


def of_python(report: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Yield each file of `coverage json` with its lines and the number that ran."""
    for name, file in report["files"].items():
        yield name, file["summary"]["num_statements"], file["summary"]["covered_lines"]


def of_cpp(report: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Yield the same from `gcovr --json-summary`."""
    for file in report["files"]:
        yield file["filename"], file["line_total"], file["line_covered"]


def main(python: str, cpp: str) -> None:
    total: Counter[str] = Counter()
    covered: Counter[str] = Counter()
    for files in (
        of_cpp(json.loads(Path(cpp).read_text())),
        of_python(json.loads(Path(python).read_text())),
    ):
        for name, n_total, n_covered in files:
            folder = str(PurePosixPath(name).parent)
            total[folder] += n_total
            covered[folder] += n_covered
    print("| folder | lines | run |\n|---|--:|--:|")
    for folder, n in sorted(total.items()):
        if n:
            print(f"| {folder} | {n} | {covered[folder] / n:.0%} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
