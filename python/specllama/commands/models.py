"""`specllama models`: lists the models that huggingface_hub, llama.cpp, LM Studio and Ollama have
downloaded to this machine, and the draft models that fit each of them."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence

from specllama_light.default_model import installed_model
from specllama_light.local_models import caches, files, is_projector, ollama_folders, ollama_models

from specllama import _core
from specllama._progress import bar
from specllama.commands import _arguments
from specllama.errors import ArgumentError
from specllama.model.found import Found, look


def run(arguments: argparse.Namespace) -> int:
    """List the models; return the exit code."""
    for folder in arguments.folders:
        if not os.path.isdir(folder):
            raise ArgumentError(f"There is no directory {folder}.")
    folders, of_ollama = [*caches(), *arguments.folders], ollama_folders()
    installed = installed_model()
    models = [
        *((path, "") for path in files(folders) if not is_projector(path.name)),
        *([(installed, "the default of chat and demo")] if installed else []),
        *((path, f"Ollama's {name}") for name, path in ollama_models(of_ollama)),
    ]
    found = [look(*one) for one in bar(iterable=models, desc="reading", delay=0.3)]
    # Small models first: then the drafts in a row are numbers of rows above it.
    found.sort(key=lambda model: (model.file.weight_bytes if model.file else 0, model.name))
    if arguments.json:
        for model in found:
            print(json.dumps(_record(model, found)))
    else:
        _print_table([model for model in found if model.file])
        for model in found:
            if model.error:
                print(model.error)
            elif slow := _core.slow_types(str(model.path)):
                print(f"{model.name}: {slow}")
        if not found:
            print("No models found in the usual folders; give a folder to search.")
        print(f"Searched: {', '.join(map(str, [*folders, *of_ollama]))}")
    return 0


def _record(model: Found, found: Sequence[Found]) -> dict[str, object]:
    file = model.file
    return {
        "name": model.name,
        "path": str(model.path),
        "error": model.error,
        "architecture": file and file.architecture,
        "weights": file and file.weight_type,
        "parameters": file and file.n_parameters,
        "bytes": file and file.weight_bytes,
        "head": file and file.head,
        "projector": model.projector and str(model.projector),
        "drafts": [str(draft.path) for draft in found if draft.could_draft_for(model)],
        "mtp": file and file.brings_head,
        "slow_types": file and _core.slow_types(str(model.path)),
    }


def _print_table(models: Sequence[Found]) -> None:
    if not models:
        return
    rows = [("", "size", "parameters", "architecture", "weights", "drafts", "model")]
    for i, model in enumerate(models):
        file = model.file
        assert file is not None
        drafts = [str(j + 1) for j, draft in enumerate(models) if draft.could_draft_for(model)]
        drafts += ["mtp"] * file.brings_head
        rows.append(
            (
                str(i + 1),
                _short(file.weight_bytes) + "B",
                _short(file.n_parameters),
                file.architecture,
                file.weight_type,
                " ".join(drafts) or "-",
                _named(model),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if column < 3 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    print(
        "drafts: the numbers of models (smaller, with the same vocabulary) and heads that could "
        "draft for it; mtp: its file has a head; with mmproj...: the projector for images or sounds"
    )


def _named(model: Found) -> str:
    """Return a model's name, with the kind of a head and the name of its projector."""
    assert model.file is not None
    head = [model.file.head] if model.file.head else []
    projector = [f"with {model.projector.name}"] if model.projector else []
    return ", ".join([model.name, *head, *projector])


def _short(number: float) -> str:
    """Return a number with three significant digits and a unit, such as 5.87M."""
    for unit in ("", "k", "M", "G"):
        if number < 999.5:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g}T"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `models` to the command line."""
    parser = commands.add_parser(
        "models", help="list the models that are already on this machine", description=__doc__
    )
    parser.add_argument(
        "folders", nargs="*", type=_arguments.path, metavar="DIR",
        help="more folders to search for GGUF files (default: none)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print a JSON object per model")
    parser.set_defaults(run=run)
