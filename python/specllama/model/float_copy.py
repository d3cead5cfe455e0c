"""A copy of a quantized model with F16 weights."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import llama_cpp

from specllama import _core
from specllama.errors import SpecllamaError


@contextmanager
def float_copy(model: Path) -> Iterator[Path]:
    """Give the path of a copy in the temporary folder, which is deleted afterwards.

    The copy has the same weights, rounded to 11 significant bits. It shows what the layout of the
    weights does: that decides what a decode of several tokens costs, compared with one token.

    Raises:
        SpecllamaError: It cannot be made: the model is damaged, or the disk is full.
    """
    _core.set_verbose(False)  # else llama.cpp prints a line for every tensor
    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_F16
    options.allow_requantize = True
    with tempfile.TemporaryDirectory(prefix="specllama-") as folder:
        copy = Path(folder) / model.with_suffix(".f16.gguf").name
        if llama_cpp.llama_model_quantize(os.fsencode(model), os.fsencode(copy), options) != 0:
            raise SpecllamaError(f"No copy of {model} with F16 weights can be made in {folder}.")
        yield copy
