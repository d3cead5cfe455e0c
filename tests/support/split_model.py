"""GGUF files in parts, as large models are published."""

from __future__ import annotations

from pathlib import Path

import gguf


def split(source: Path, target: Path, architecture: str, n_tensors: int) -> list[Path]:
    """Write a GGUF anew in parts of so many tensors; return their paths."""
    target.parent.mkdir(exist_ok=True)
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, architecture, split_max_tensors=n_tensors)
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            kind = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], kind)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(target.parent.glob(f"{target.stem}-*.gguf"))
