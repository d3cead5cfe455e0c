"""The console script `spec-cli`: hands over to the executable that lies in the package."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from specllama_light.default_model import installed_model

_NAMES = {"-hf": "-m", "--hf-repo": "-m", "-hfd": "-md", "--hf-repo-draft": "-md"}
"""Options that take a name on the Hub, and those that take a file instead."""

_PROMPTS = ("-p", "--prompt", "-f", "--file", "-")

_FOR_BUNDLED = ("--corpus",)
"""What is made for one vocabulary, the bundled model's where no model is named."""

_FILES = ("-m", "--model", "-md", "--draft-model")


def executable() -> Path:
    """Return the path of the executable."""
    from specllama import _build

    return Path(_build.__file__).parent / "bin" / "spec-cli"


def with_files(arguments: Sequence[str]) -> list[str]:
    """Return command-line arguments with the files of models in place of their names.

    The executable has no Python, so the download is done before. Raises as `hub.fetch` does.
    """
    from specllama.model.hub import SCHEME, fetch

    result: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        option, equals, value = argument.partition("=")
        if option not in _NAMES and option not in _FILES:
            result.append(argument)
            continue
        model = value if equals else next(rest, None)
        if model is None:  # it is for the executable to complain
            result.append(option)
        elif option in _NAMES or model.startswith(SCHEME):
            result += [_NAMES.get(option, option), fetch(model)]
        else:
            result += [option, model]
    return result


def with_default_model(arguments: Sequence[str]) -> list[str]:
    """Return arguments that name SmolLM2, where it is installed, if they have a prompt and nothing
    that settles which model is meant; else as they are."""
    options = {argument.partition("=")[0] for argument in arguments}
    named = options.intersection([*_NAMES, *_FILES, *_FOR_BUNDLED])
    model = installed_model()
    if model is None or named or not options.intersection(_PROMPTS):
        return list(arguments)
    return ["-m", str(model), *arguments]


def main() -> NoReturn:
    """Become `spec-cli`, with this process's arguments."""
    from specllama._llama import check_version
    from specllama.errors import SpecllamaError

    check_version()
    path = executable()
    try:
        arguments = with_files(with_default_model(sys.argv[1:]))
    except SpecllamaError as error:
        print(f"spec-cli: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ValueError) else 1)
    os.execv(path, [str(path), *arguments])
