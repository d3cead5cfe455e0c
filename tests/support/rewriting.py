"""Rewrites GGUF files: with other values and tensors, in parts, in other weight types."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import gguf
import llama_cpp
import numpy as np


def add_value(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def rewrite(
    source: Path,
    target: Path,
    fields: dict[str, Any],
    tensors: dict[str, Any],
    kinds: dict[str, gguf.GGMLQuantizationType] | None = None,
) -> None:
    """Copy a GGUF; `fields` replace or add values, `tensors` replace data by name (None: left out).
    kinds: types of tensors whose data are bytes."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture" or key in fields:
            continue
        sub_type = field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(key, field.contents(), field.types[0], sub_type)
    for key, value in fields.items():
        if value is not None:
            add_value(writer, key, value)
    for tensor in reader.tensors:
        if tensor.name not in tensors:
            data = np.array(tensor.data)
            writer.add_tensor(tensor.name, data, raw_dtype=tensor.tensor_type)
    for name, data in tensors.items():
        if data is not None:
            writer.add_tensor(name, data, raw_dtype=(kinds or {}).get(name))
    finish(writer)


def finish(writer: gguf.GGUFWriter) -> None:
    """Write the file and close it."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def copy_fields(reader: gguf.GGUFReader, writer: gguf.GGUFWriter) -> None:
    """Copy the whole header except the architecture, which the writer has."""
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            kind = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], kind)


def split(source: Path, target: Path, architecture: str, n_tensors: int) -> list[Path]:
    """Write a GGUF again in parts of so many tensors; return their paths."""
    target.parent.mkdir(exist_ok=True)
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, architecture, split_max_tensors=n_tensors)
    copy_fields(reader, writer)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    finish(writer)
    return sorted(target.parent.glob(f"{target.stem}-*.gguf"))


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
    """Write a model again with all its matrices in one type, a key of TYPES; return its path."""
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
