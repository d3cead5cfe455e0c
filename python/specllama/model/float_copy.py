"""A copy of a quantized model with F16 weights."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from specllama import _core
from specllama.errors import SpecllamaError


@contextmanager
def float_copy(model: Path) -> Iterator[Path]:
    """Give the path of a copy in the temporary folder. The copy is deleted afterwards, even if
    SIGTERM or SIGHUP ends the process. Only the main thread may call this, because it handles
    signals.

    The copy has the same weights, rounded to 11 significant bits. It shows the effect of the layout
    of the weights, which decides how much more a decode of several tokens costs than one of one
    token.

    Raises:
        SpecllamaError: It cannot be made: the model is damaged, the disk is full, or there is no
            temporary folder.
    """
    import llama_cpp  # here: importing it takes a while

    _core.set_verbose(False)  # else llama.cpp prints a line for every tensor
    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_F16
    options.allow_requantize = True
    with _leaving_in_order(), _temporary_folder() as folder:
        copy = Path(folder) / model.with_suffix(".f16.gguf").name
        if llama_cpp.llama_model_quantize(os.fsencode(model), os.fsencode(copy), options) != 0:
            raise SpecllamaError(f"A copy of {model} with F16 weights cannot be made in {folder}.")
        yield copy


def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="specllama-")
    except OSError as error:
        raise SpecllamaError(
            f"A folder for a copy with F16 weights cannot be made: {error.strerror}."
        ) from None


@contextmanager
def _leaving_in_order() -> Iterator[None]:
    """Within this context, the first signal that would end the process raises SystemExit instead,
    with the exit code that a shell uses; later signals are ignored."""
    ending = [
        one
        for one in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(one) is signal.SIG_DFL  # else it is ignored, as under nohup
    ]

    def leave(number: int, _: object) -> NoReturn:
        for one in ending:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for one in ending:
        signal.signal(one, leave)
    try:
        yield
    finally:
        for one in ending:
            signal.signal(one, signal.SIG_DFL)
