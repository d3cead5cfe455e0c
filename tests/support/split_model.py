"""GGUF files in parts, as large models are published."""

from __future__ import annotations

from pathlib import Path

import gguf
from random_model import finish


def copy_fields(reader: gguf.GGUFReader, writer: gguf.GGUFWriter) -> None:
    """Copy all that a header says but the architecture, which the writer knows."""
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            kind = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], kind)


def split(source: Path, target: Path, architecture: str, n_tensors: int) -> list[Path]:
    """Write a GGUF anew in parts of so many tensors; return their paths."""
    target.parent.mkdir(exist_ok=True)
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, architecture, split_max_tensors=n_tensors)
    copy_fields(reader, writer)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    finish(writer)
    return sorted(target.parent.glob(f"{target.stem}-*.gguf"))
