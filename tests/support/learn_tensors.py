"""Finds the tensors that llama.cpp requires of an architecture, and writes them down for
any_model.py.

    python tests/support/learn_tensors.py NAME ...     # or --all

NAME: an entry of tests/data/architectures.json with values. A model with the tensors found so far
is loaded; llama.cpp reports the next missing tensor, then its shape, and so on.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import llama_cpp
from any_model import DATA, architectures, tensors, write

MISSING = re.compile(r"missing tensor '([^']+)'|tensor '([^']+)' not found")
WRONG = re.compile(r"tensor '([^']+)' has wrong shape; expected ([\d, ]+), got")


def complaint(path: Path) -> str:
    """Return llama.cpp's error for a file ("": it loads). In a child, because some files end the
    process."""
    source, target = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(target, 2)
        log = llama_cpp.llama_log_callback(
            lambda level, text, data: (os.write(target, text), None)[1]
        )
        llama_cpp.llama_log_set(log, ctypes.c_void_p(0))
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 0
        params.load_mtp = True
        loaded = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
        os.write(target, b"loaded\n" if loaded else b"")
        os._exit(0)
    os.close(target)
    with os.fdopen(source, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    os.waitpid(child, 0)
    return "" if said.endswith("loaded\n") else said


def learn(name: str, entry: dict[str, Any]) -> dict[str, list[int]]:
    """Return the shape of each tensor, including those of the entry that llama.cpp does not
    require."""
    shapes = dict(tensors(entry["tensors"], entry["values"]["block_count"]))
    before = ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        while said := complaint(write(path, name, entry | {"tensors": shapes})):
            if said == before:
                raise SystemExit(f"{name}: llama.cpp repeats itself: {said}")
            before = said
            if found := WRONG.search(said):
                shapes[found[1]] = [int(n) for n in found[2].split(",")]
            elif found := MISSING.search(said):
                shapes[found[1] or found[2]] = [1]
            else:
                raise SystemExit(f"{name}: {said}")
    return shapes


def by_layer(shapes: dict[str, list[int]], n_layers: int) -> dict[str, list[int]]:
    """Join the tensors that have the same name and shape in all layers, or in some."""
    layers = defaultdict(list)
    for name, shape in shapes.items():
        _, layer, rest = name.split(".", 2) if name.startswith("blk.") else ("", "", name)
        layers[rest, tuple(shape)].append(layer)
    joined = {}
    for (rest, shape), where in layers.items():
        place = "*" if len(where) == n_layers else ",".join(where)
        joined[f"blk.{place}.{rest}" if where[0] else rest] = list(shape)
    return joined


def dump(entries: dict[str, Any]) -> str:
    """Return JSON with a line for each architecture's values and one for each of its tensors."""
    parts = []
    for name, entry in entries.items():
        tensors = ",\n".join(
            f"      {json.dumps(tensor)}: {json.dumps(shape)}"
            for tensor, shape in entry["tensors"].items()
        )
        parts.append(
            f"  {json.dumps(name)}: {{\n"
            f'    "values": {json.dumps(entry["values"])},\n'
            f'    "tensors": {{\n{tensors}\n    }}\n  }}'
        )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Learns the tensors of architectures.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    entries = architectures()
    for name in entries if arguments.all else arguments.names:
        entry = entries[name]
        shapes = learn(name, entry)
        entry["tensors"] = by_layer(shapes, entry["values"]["block_count"])
        DATA.write_text(dump(entries))
        print(f"{name}: {len(shapes)} tensors")


if __name__ == "__main__":
    main()
