"""Write a copy of a GGUF model that computes the same results at the cost of a larger model.

    python models/pad.py IN.gguf OUT.gguf --size 0.5G --type bf16
    python models/pad.py IN.gguf OUT.gguf --size 0.5G --type q8_0 --layers 10 --embedding 1024

Every feed-forward network is widened: gate and up get random rows, and down gets columns of zeros,
which multiply the results of these rows. With --layers N, N layers are appended that add zero:
their attention and feed-forward output projections are zeros, and their other weights are random.
With --embedding N, the vector of every token has this length, with zeros at its end, which stay
zeros. All products are computed, but the new ones do not change a result.

The rows of a small model are short, and kernels for a single token are slow on short rows. To cost
as much as a real model, it needs all three.

Weights are stored as --type; those that already have this type are copied bit for bit. Metadata are
kept, except name, file type and sizes, and, with a longer embedding, values that depend on it. Only
for dense models of the `llama` architecture. Needs gguf and numpy.
"""

from __future__ import annotations

import argparse
import re
from math import prod
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType
from padded import Output, Padding, add_nothing, widen

TYPES = {
    "f32": (GGMLQuantizationType.F32, LlamaFileType.ALL_F32),
    "f16": (GGMLQuantizationType.F16, LlamaFileType.MOSTLY_F16),
    "bf16": (GGMLQuantizationType.BF16, LlamaFileType.MOSTLY_BF16),
    "q8_0": (GGMLQuantizationType.Q8_0, LlamaFileType.MOSTLY_Q8_0),
    "q5_1": (GGMLQuantizationType.Q5_1, LlamaFileType.MOSTLY_Q5_1),
    "q5_0": (GGMLQuantizationType.Q5_0, LlamaFileType.MOSTLY_Q5_0),
    "q4_1": (GGMLQuantizationType.Q4_1, LlamaFileType.MOSTLY_Q4_1),
    "q4_0": (GGMLQuantizationType.Q4_0, LlamaFileType.MOSTLY_Q4_0),
}
"""Weight types to choose from: those that the gguf package can write."""

GRANULE = 32
"""Step of the feed-forward width: the block size of the quantised types. So no block has both
original and new columns, and no original block changes."""


class PadError(Exception):
    """A request that cannot be satisfied; the message is one sentence."""


def pad(
    source: Path,
    target: Path,
    size: int,
    weight_type: str,
    layers: int = 0,
    embedding: int | None = None,
) -> str:
    """Write `target` from `source`, as near to `size` bytes as the step of the width allows.

    weight_type: a key of `TYPES`. layers: number of layers to append. embedding: its length; None:
    unchanged. The same arguments give the same bytes. Returns a line that describes the result.
    """
    if target.exists() and target.samefile(source):
        raise PadError(f"{source} cannot be padded onto itself")
    tensor_type, file_type = TYPES[weight_type]
    reader = open_model(source)
    check(reader, tensor_type, layers)
    factor = 1 if embedding is None else growth(reader, embedding)

    def total(ffn: int) -> int:
        outputs = plan(reader, tensor_type, Padding(ffn, layers, factor))
        return reader.data_offset + sum(prod(output.byte_shape) for output in outputs)

    smallest = total(0)
    step = total(GRANULE) - smallest
    if size < smallest:
        more = f" with {layers} more layers" if layers else ""
        wider = f" and an embedding of {embedding}" if factor > 1 else ""
        raise PadError(
            f"{size / 1e6:.1f} MB is less than the model itself takes: "
            f"{smallest / 1e6:.1f} MB as {weight_type}{more}{wider}"
        )
    extra = GRANULE * round((size - smallest) / step)
    outputs = plan(reader, tensor_type, Padding(extra, layers, factor))
    ffn = number(reader, "feed_forward_length") + extra
    blocks = number(reader, "block_count") + layers

    writer = GGUFWriter(target, "llama")
    sizes = {"feed_forward_length", "block_count"}
    if factor > 1:
        sizes |= {"embedding_length", "attention.layer_norm_rms_epsilon"}
    copy_metadata(reader, writer, sizes)
    if factor > 1:
        add_embedding(reader, writer, factor)
    name = reader.fields.get("general.name")
    writer.add_name(
        f"{name.contents() if name else source.stem} padded to {size / 1e9:.3g} GB {weight_type}"
    )
    writer.add_file_type(file_type)
    writer.add_feed_forward_length(ffn)
    writer.add_block_count(blocks)
    for output in outputs:
        shape = output.byte_shape
        writer.add_tensor_info(
            output.name, shape, np.dtype(np.uint8), prod(shape), raw_dtype=output.type
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for output in outputs:
        writer.write_tensor_data(output.data())
    writer.close()
    gigabytes = target.stat().st_size / 1e9
    return f"{target}: {gigabytes:.3f} GB, {blocks} layers, feed-forward width {ffn}"


def open_model(path: Path) -> GGUFReader:
    try:
        reader = GGUFReader(path)
        for field in reader.fields.values():
            field.contents()  # decodes the value, which may fail
    except (ValueError, LookupError) as error:
        raise PadError(f"{path} is not a readable GGUF file: {error}") from error
    architecture = reader.fields.get("general.architecture")
    if architecture is None or architecture.contents() != "llama":
        found = f"is `{architecture.contents()}`" if architecture else "is not given"
        raise PadError(f"only the `llama` architecture can be padded; that of {path} {found}")
    return reader


def check(reader: GGUFReader, tensor_type: GGMLQuantizationType, layers: int) -> None:
    """Raise PadError for models that would not load or not compute the same."""
    fields = reader.fields
    for key in ("block_count", "feed_forward_length"):
        field = fields.get(f"llama.{key}")
        if field is None or not isinstance(field.contents(), int):
            raise PadError(f"llama.{key} must be one number for all layers")
    if any(".ffn_" in tensor.name and tensor.name.endswith(".bias") for tensor in reader.tensors):
        raise PadError("feed-forward networks with biases cannot be padded")
    if "split.count" in fields:
        raise PadError("a model split over several files must be merged first")
    if layers and any(key.startswith("llama.") and is_array(fields[key]) for key in fields):
        raise PadError("layers cannot be appended to a model with per-layer metadata")

    names = {tensor.name for tensor in reader.tensors}
    for layer in range(number(reader, "block_count")):
        for part in ("gate", "up", "down"):
            if f"blk.{layer}.ffn_{part}.weight" not in names:
                raise PadError(
                    f"blk.{layer}.ffn_{part}.weight is missing: only dense, gated "
                    "feed-forward networks can be padded"
                )
    block = gguf.GGML_QUANT_SIZES[tensor_type][0]
    for tensor in reader.tensors:
        if len(tensor.shape) > 2:
            raise PadError(f"{tensor.name} has more than two dimensions")
        if len(tensor.shape) == 2 and tensor.shape[0] % block:
            raise PadError(
                f"{tensor.name} has rows of {tensor.shape[0]} weights, not a multiple of the "
                f"{block} that {tensor_type.name} stores together"
            )
        try:
            gguf.dequantize(tensor.data[:1], tensor.tensor_type)
        except NotImplementedError as error:
            raise PadError(f"{tensor.name} cannot be read: {error}") from error


def growth(reader: GGUFReader, embedding: int) -> int:
    """Return the factor by which the embedding grows."""
    for key in ("embedding_length", "attention.head_count"):
        field = reader.fields.get(f"llama.{key}")
        if field is None or not isinstance(field.contents(), int):
            raise PadError(f"llama.{key} must be one number for all layers")
    if "llama.attention.layer_norm_rms_epsilon" not in reader.fields:
        raise PadError("llama.attention.layer_norm_rms_epsilon is missing")
    length = number(reader, "embedding_length")
    factor = embedding // length
    # With new zeros, the mean over four times as many numbers is a quarter; half the root is exact
    # in binary.
    if factor * length != embedding or factor.bit_count() != 1 or factor.bit_length() % 2 == 0:
        raise PadError(f"the embedding must be {length} times a power of 4, not {embedding}")
    if factor > 1 and any(tensor.name.endswith(".bias") for tensor in reader.tensors):
        raise PadError("the embedding of a model with biases cannot be padded")
    return factor


def plan(reader: GGUFReader, tensor_type: GGMLQuantizationType, padding: Padding) -> list[Output]:
    """All tensors of a model with `padding`."""
    widened = [widen(tensor, tensor_type, padding) for tensor in reader.tensors]
    blocks = number(reader, "block_count")
    first_block = [output for output in widened if output.name.startswith("blk.0.")]
    return widened + [
        add_nothing(output, f"blk.{blocks + layer}." + output.name.removeprefix("blk.0."))
        for layer in range(padding.layers)
        for output in first_block
    ]


def copy_metadata(reader: GGUFReader, writer: GGUFWriter, sizes: set[str]) -> None:
    """Copy all metadata except those that `pad` sets, including these sizes, or the writer
    writes."""
    replaced = {"general.architecture", "general.file_type", "general.name"}
    replaced |= {f"llama.{size}" for size in sizes}
    writer.data_alignment = reader.alignment
    for key, field in reader.fields.items():
        if key not in replaced and not key.startswith("GGUF."):
            element = field.types[-1] if is_array(field) else None
            writer.add_key_value(key, field.contents(), field.types[0], element)


def add_embedding(reader: GGUFReader, writer: GGUFWriter, factor: int) -> None:
    """Write the embedding's length, and values that llama.cpp would otherwise derive from it."""
    length = number(reader, "embedding_length")
    epsilon = reader.fields["llama.attention.layer_norm_rms_epsilon"].contents()
    head = length // number(reader, "attention.head_count")
    writer.add_embedding_length(length * factor)
    writer.add_layer_norm_rms_eps(epsilon / factor)
    for key, add in (
        ("key_length", writer.add_key_length),
        ("value_length", writer.add_value_length),
    ):
        if f"llama.attention.{key}" not in reader.fields:
            add(head)


def is_array(field: gguf.ReaderField) -> bool:
    return field.types[0] == GGUFValueType.ARRAY


def number(reader: GGUFReader, key: str) -> int:
    return int(reader.fields[f"llama.{key}"].contents())


def byte_count(text: str) -> int:
    """`0.5G`, `30M` or `500000000` to bytes; K, M and G are powers of 1000."""
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)([KMG]?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 0.5G, 30M or 500000000")
    factor = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}[match[2].upper()]
    return round(float(match[1]) * factor)


def layer_count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of layers")
    return int(text)


def embedding_length(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a length")
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path, metavar="IN.gguf")
    parser.add_argument("target", type=Path, metavar="OUT.gguf")
    parser.add_argument(
        "--size", type=byte_count, required=True, help="size to reach: 0.5G, 30M or a byte count"
    )
    parser.add_argument("--type", choices=TYPES, required=True, help="weight type")
    parser.add_argument(
        "--layers", type=layer_count, default=0, help="layers to append; default: 0"
    )
    parser.add_argument(
        "--embedding", type=embedding_length, help="length of the embedding; default: unchanged"
    )
    arguments = parser.parse_args()
    try:
        print(
            pad(
                arguments.source,
                arguments.target,
                arguments.size,
                arguments.type,
                arguments.layers,
                arguments.embedding,
            )
        )
    except (PadError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
