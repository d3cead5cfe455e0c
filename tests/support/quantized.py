"""Writes models in other weight types, by llama.cpp's own quantization."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import llama_cpp

TYPES = {
    "q4_1": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_1,
    "q5_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q5_0,
    "q5_1": llama_cpp.LLAMA_FTYPE_MOSTLY_Q5_1,
    "q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
    "q2_k": llama_cpp.LLAMA_FTYPE_MOSTLY_Q2_K,
    "q3_k": llama_cpp.LLAMA_FTYPE_MOSTLY_Q3_K_M,
    "q4_k": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M,
    "q5_k": llama_cpp.LLAMA_FTYPE_MOSTLY_Q5_K_M,
    "q6_k": llama_cpp.LLAMA_FTYPE_MOSTLY_Q6_K,
    "iq4_nl": llama_cpp.LLAMA_FTYPE_MOSTLY_IQ4_NL,
    "iq4_xs": llama_cpp.LLAMA_FTYPE_MOSTLY_IQ4_XS,
}


def write_quantized(model: Path, path: Path, weights: str) -> Path:
    """Write a model again with all its matrices of one type, a key of TYPES; return its path."""
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = TYPES[weights]
    params.allow_requantize = True
    params.pure = True
    params.nthread = 2
    failed = llama_cpp.llama_model_quantize(
        os.fsencode(model), os.fsencode(path), ctypes.byref(params)
    )
    assert not failed
    return path
