"""GGUF files written anew with other values and tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
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
    """Copy a GGUF; `fields` replace or add values, `tensors` data by name. None: leave it out.
    kinds: the types of tensors whose data are bytes."""
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
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
