"""Which rooms of the Python package may import which, and no import cycles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from folders import ROOT

PYTHON = ROOT / "python"

BASE = {
    "_arrays", "_build", "_check", "_closing", "_color", "_core", "_field", "_files",
    "_interrupt", "_llama", "_process", "_progress", "drafter", "errors",
}  # fmt: skip
"""Rooms below all others."""

MODEL = BASE | {"formats", "media", "model", "specllama_light"}
SESSION = MODEL | {"dialogue", "remote", "requests", "session"}

MAY_IMPORT: dict[str, set[str]] = {
    **dict.fromkeys(BASE, BASE),
    "formats": BASE | {"formats"},
    "media": BASE | {"media"},
    "model": MODEL,
    "requests": MODEL | {"requests"},
    "dialogue": MODEL | {"requests", "dialogue"},
    "remote": MODEL | {"remote"},
    "session": SESSION - {"session"},
    "theory": BASE | {"theory"},
    "simulate": BASE | {"theory", "simulate"},
    "workloads": BASE | {"model", "workloads"},
    "measure": SESSION | {"theory", "measure"},
    "bench": SESSION | {"theory", "simulate", "workloads", "measure", "bench"},
    "server": SESSION | {"", "server"},
    "chat": SESSION | {"chat"},
    "commands": SESSION
    | {"theory", "simulate", "workloads", "measure", "bench", "server", "chat", "commands"}
    | {"__main__"},
    "": SESSION,
    "__main__": {"", "_core", "commands", "errors"},
    # The fast entry point imports the package only inside functions.
    "specllama_light": {"", "__main__", "commands", "specllama_light"},
}
"""Allowed imports by the name of a folder or a module at the root; "" is `specllama` itself."""


def modules() -> dict[str, Path]:
    """Return all modules by name; a folder has the name of its __init__."""
    found = {}
    for path in sorted([*PYTHON.glob("*/**/*.py"), *PYTHON.glob("*/**/*.pyi")]):
        parts = path.relative_to(PYTHON).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the package's modules that a file imports, and whether the import is at its top."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else node.module for name in below]
        else:
            continue
        for name in names:
            if name in MODULES:
                yield name, node in tree.body


def room(module: str) -> str:
    """Return the room of a module, as in `MAY_IMPORT`."""
    package, _, rest = module.partition(".")
    return package if package == "specllama_light" else rest.partition(".")[0]


@pytest.mark.parametrize("module", MODULES)
def test_rooms_import_only_lower_rooms(module: str) -> None:
    allowed = MAY_IMPORT[room(module)]
    above = [name for name, _ in imports(MODULES[module]) if room(name) not in allowed]
    assert above == []


def test_specllama_light_imports_nothing_else_at_once() -> None:
    light = [path for name, path in MODULES.items() if room(name) == "specllama_light"]
    at_once = {name for path in light for name, at_top in imports(path) if at_top}
    assert {room(name) for name in at_once} == {"specllama_light"}


def test_imports_of_modules_have_no_cycles() -> None:
    # A package counts as its own imports, because a module that imports a part of it needs only
    # that.
    graph = {name: {one for one, _ in imports(path)} - {name} for name, path in MODULES.items()}
    graph["specllama._core"] = set()  # C++: its stub imports types of the Python package
    # The fast entry point calls the command, which uses it to find models; its import is in a
    # function.
    graph["specllama_light.command"] = set()
    order = list(TopologicalSorter(graph).static_order())  # CycleError names the cycle
    assert len(order) == len(MODULES) > 100


def test_every_room_has_a_docstring() -> None:
    rooms = [name for name, path in MODULES.items() if path.stem == "__init__"]
    assert len(rooms) > 10
    for name in rooms:
        assert ast.get_docstring(ast.parse(MODULES[name].read_text())), name


def test_the_root_of_the_package_has_few_files() -> None:
    assert len([path for path in MODULES.values() if path.parent == PYTHON / "specllama"]) <= 16
