"""The tensors of a padded model, see pad.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import gguf
import numpy as np
from gguf import GGMLQuantizationType, ReaderTensor
from numpy.typing import NDArray

RANDOM_STD = 0.02
"""Standard deviation of the random weights. It is small so that nothing overflows before it is
multiplied by zero: infinity times zero is not zero."""

POOL_ROWS = 512
"""Random rows that are drawn and quantised; longer matrices repeat them. This costs as much in
multiplications, and half a gigabyte is written in seconds."""

CHUNK = 1 << 24
"""Weights converted at a time, to limit the memory of their float32 form."""

Bytes = NDArray[np.uint8]
"""A stored tensor: (rows, bytes per row), or (bytes,) for a vector."""


class Padding(NamedTuple):
    """The additions to a model."""

    ffn: int
    """Added to the width of feed-forward networks."""
    layers: int
    factor: int
    """Growth of the embedding: a power of four, so that its root scales exactly."""


class Output(NamedTuple):
    """A tensor to write. `data` makes its bytes, so that only one tensor is in memory at a time."""

    name: str
    type: GGMLQuantizationType
    shape: tuple[int, ...]
    """(rows, columns) or (length,), in weights."""
    data: Callable[[], Bytes]

    @property
    def byte_shape(self) -> tuple[int, ...]:
        return gguf.quant_shape_to_byte_shape(self.shape, self.type)


def widen(tensor: ReaderTensor, tensor_type: GGMLQuantizationType, padding: Padding) -> Output:
    """The tensor to write, with zeros after its rows and columns; the new rows of gate and up are
    random."""
    name, factor = tensor.name, padding.factor
    if len(tensor.shape) == 1:  # norms and rotary factors keep their type
        length = tensor.n_elements
        if not name.endswith("norm.weight"):
            factor = 1
        norm = partial(scaled, tensor, factor)
        return Output(name, tensor.tensor_type, (length * factor,), norm)
    rows, columns = int(tensor.shape[1]), int(tensor.shape[0])
    writes = re.fullmatch(r"blk\.\d+\.(attn_output|ffn_down)\.weight", name)
    shape = (rows * factor, columns) if writes else (rows, columns * factor)
    if re.fullmatch(r"blk\.\d+\.ffn_down\.weight", name):
        shape = (shape[0], columns + padding.ffn)
    original = partial(corner, partial(convert, tensor, tensor_type), shape, tensor_type)
    if not re.fullmatch(r"blk\.\d+\.ffn_(gate|up)\.weight", name):
        return Output(name, tensor_type, shape, original)
    new = (padding.ffn, shape[1])
    return Output(
        name,
        tensor_type,
        (rows + padding.ffn, shape[1]),
        lambda: np.concatenate((original(), random(new, tensor_type))),
    )


def corner(
    original: Callable[[], Bytes], shape: tuple[int, int], tensor_type: GGMLQuantizationType
) -> Bytes:
    """A matrix in the corner of a larger one of zeros."""
    data = original()
    out = zeros(shape, tensor_type)
    if data.shape == out.shape:
        return data
    out[: data.shape[0], : data.shape[1]] = data
    return out


def scaled(tensor: ReaderTensor, factor: int) -> Bytes:
    """A norm's weights, for vectors that grow by `factor`."""
    if factor == 1:
        return tensor.data.view(np.uint8)
    weights = np.zeros(tensor.n_elements * factor, np.float32)
    weights[: tensor.n_elements] = gguf.dequantize(tensor.data, tensor.tensor_type)
    return quantize(weights / np.float32(factor**0.5), tensor.tensor_type)


def add_nothing(pattern: Output, name: str) -> Output:
    """A tensor shaped like `pattern`, of a layer that passes its input on unchanged."""
    shape, tensor_type = pattern.shape, pattern.type
    if "_norm." in name:
        return Output(name, tensor_type, shape, lambda: ones(shape[0], tensor_type))
    if len(shape) == 1 or "attn_output" in name or "ffn_down" in name:
        return Output(name, tensor_type, shape, lambda: zeros(shape, tensor_type))
    return Output(name, tensor_type, shape, lambda: random(shape, tensor_type))


def convert(tensor: ReaderTensor, tensor_type: GGMLQuantizationType) -> Bytes:
    if tensor.tensor_type == tensor_type:
        return tensor.data.view(np.uint8)
    rows, columns = int(tensor.shape[1]), int(tensor.shape[0])
    out = zeros((rows, columns), tensor_type)
    step = max(1, CHUNK // columns)
    for start in range(0, rows, step):
        part = slice(start, start + step)
        out[part] = quantize(gguf.dequantize(tensor.data[part], tensor.tensor_type), tensor_type)
    return out


def quantize(weights: NDArray[np.float32], tensor_type: GGMLQuantizationType) -> Bytes:
    return gguf.quantize(weights, tensor_type).view(np.uint8)


def ones(length: int, tensor_type: GGMLQuantizationType) -> Bytes:
    return quantize(np.ones(length, np.float32), tensor_type)


def zeros(shape: tuple[int, ...], tensor_type: GGMLQuantizationType) -> Bytes:
    """In every type of `TYPES`, zero has only zero bits, including scales and offsets."""
    return np.zeros(gguf.quant_shape_to_byte_shape(shape, tensor_type), np.uint8)


def random(shape: tuple[int, ...], tensor_type: GGMLQuantizationType) -> Bytes:
    rows, columns = shape
    return np.resize(random_pool(columns, tensor_type), zeros((rows, columns), tensor_type).shape)


@cache
def random_pool(columns: int, tensor_type: GGMLQuantizationType) -> Bytes:
    weights = np.random.default_rng(0).standard_normal((POOL_ROWS, columns), np.float32)
    return quantize(weights * np.float32(RANDOM_STD), tensor_type)
