"""Make the replayed workloads from the running Python's standard library.

    python tools/workloads/make.py [FOLDER]

writes edit.jsonl, quote.jsonl, code.jsonl, json.jsonl and prose.jsonl, by default to the package's
folder. Run it with CPython 3.11.7, whose library the bundled models were trained on: the same
version gives the same bytes; another version may have other functions or texts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import edits
import functions
import prose
import quotes
import records
from specllama.workloads import Replay

MAKERS: dict[str, Callable[[], Iterator[Replay]]] = {
    "edit": edits.make,
    "quote": quotes.make,
    "code": functions.make,
    "json": records.make,
    "prose": prose.make,
}

PACKAGE = Path(__file__).parents[2] / "python" / "specllama" / "workloads"


def main(folder: Path) -> None:
    for name, make in MAKERS.items():
        lines = [json.dumps(asdict(replay), ensure_ascii=False) for replay in make()]
        path = folder / f"{name}.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{path}: {len(lines)} texts, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)
