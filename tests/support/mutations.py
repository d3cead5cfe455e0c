"""Small GGUF files of several kinds, and mutated copies of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import any_model
import gguf
import numpy as np
from heads import write_eagle3, write_glm, write_qwen
from random_model import WIDTH, WRITERS, dense_model
from rewriting import rewrite

Type = gguf.GGUFValueType


def write_rwkv_words(path: Path) -> Path:
    """Write a Llama with a tokenizer of RWKV's kind."""
    n = 300
    words = [f"\\x{i:02x}" for i in range(256)] + [f"word{i}" for i in range(n - 256)]
    model = dense_model(3)
    model.tensors["token_embd.weight"] = 4 * model.matrix(n, WIDTH)
    model.tensors["output.weight"] = 3 * model.matrix(n, WIDTH)
    whole = model.write(path.with_suffix(".whole"), "llama", 2, {"rope.dimension_count": 64})
    changed = {"model": "rwkv", "tokens": words, "token_type": [1] * n, "scores": [0.0] * n}
    rewrite(whole, path, {f"tokenizer.ggml.{name}": value for name, value in changed.items()}, {})
    return path


def _any_model(name: str) -> Callable[[Path], Path]:
    return lambda path: any_model.write(path, name, any_model.architectures()[name])


KINDS: dict[str, Callable[[Path], Path]] = {
    **WRITERS,
    "heads": write_eagle3,
    "qwen with prediction": write_qwen,
    "glm with prediction": write_glm,
    "rwkv words": write_rwkv_words,
    **{f"any {name}": _any_model(name) for name in any_model.architectures()},
}


def original(folder: Path, rng: Random) -> Path:
    """Write an undamaged file of a random kind; half of them are of the first kinds."""
    names = [name for name in KINDS if name.startswith("any ") == (rng.random() < 0.5)]
    name = rng.choice(names or [*KINDS])
    path = folder / f"{name}.gguf"
    if not path.exists():
        KINDS[name](path)
    return path


def mutate(source: Path, target: Path, rng: Random) -> str:
    """Write a copy with one change; return a description of the change."""
    change = rng.choice([_bytes, _cut, *[_value] * 5, *[_tensor] * 4, _words])
    return change(source, target, rng)


def _bytes(source: Path, target: Path, rng: Random) -> str:
    data = bytearray(source.read_bytes())
    end = rng.choice([300, 3000, len(data)])
    places = [rng.randrange(4, end) for _ in range(rng.choice([1, 1, 3, 10]))]
    for place in places:
        data[place] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    target.write_bytes(data)
    return f"bytes {places}"


def _cut(source: Path, target: Path, rng: Random) -> str:
    data = source.read_bytes()
    end = rng.randrange(len(data))
    target.write_bytes(data[:end] + rng.choice([b"", bytes(rng.randrange(64))]))
    return f"cut at {end}"


def _other_value(value: Any, rng: Random) -> Any:
    """Return a replacement for a value."""
    if isinstance(value, list) and value and rng.random() < 0.7:
        changed = list(value)
        if rng.random() < 0.3:
            return changed[: rng.randrange(len(changed) + 1)]
        place = rng.randrange(len(changed))
        if isinstance(changed[place], (int, float)):
            changed[place] = type(changed[place])(rng.choice([0, -1, 1, 2, 7, 2**31 - 1]))
        else:
            changed[place] = rng.choice(["", "a", "\\x", "<0x41>", "<0x", "\u017c", "a b"])
        return changed
    numbers = [0, 1, 2, 3, 7, 8, 63, 255, 2**16, 2**26, 2**31 - 1, 2**31, 2**32 - 1]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int) and rng.random() < 0.8:
        near = [value - 1, value + 1, 2 * value, value // 2, 3 * value]
        return max(rng.choice(numbers + 2 * near), 0) & 0xFFFFFFFF
    if isinstance(value, float) and rng.random() < 0.8:
        return rng.choice([0.0, -1.0, 1e30, 1e-30, math.inf, -math.inf, math.nan])
    return rng.choice([0, 1, 2**31, 1.5, True, "", "other", "yarn", [1, 2], ["a"], [0.5]])


def _value(source: Path, target: Path, rng: Random) -> str:
    reader = gguf.GGUFReader(source)
    keys = [key for key in reader.fields if not key.startswith("GGUF.")]
    prefix = reader.fields["general.architecture"].contents()
    added = ["embedding_length_out", "n_deepstack_layers", "embedding_length_per_layer_input"]
    added += ["rope.scaling.type", "rope.freq_base", "attention.sliding_window", "expert_count"]
    added += ["attention.key_length", "attention.value_length", "rope.dimension_count"]
    added += ["nextn_predict_layers", "attention.head_count_kv", "attention.clamp_kqv"]
    keys += [f"{prefix}.{name}" for name in added]
    changed = {}
    for key in rng.sample(keys, rng.choice([1, 1, 1, 2, 3])):
        if key == "general.architecture":
            continue
        field = reader.fields.get(key)
        changed[key] = (
            None
            if rng.random() < 0.1
            else _other_value(0 if field is None else field.contents(), rng)
        )
    rewrite(source, target, changed, {})
    return f"values {str(changed)[:300]}"


def _words(source: Path, target: Path, rng: Random) -> str:
    """Replace the kind of tokenizer, with the same tokens."""
    model = rng.choice(["llama", "gpt2", "t5", "rwkv", "plamo2", "gemma4", "hybriddna"])
    changed: dict[str, Any] = {"tokenizer.ggml.model": model}
    if rng.random() < 0.7:
        changed["tokenizer.ggml.merges"] = rng.choice([["a b"], ["w 1", "w1 2"], [""], [" "]])
    if rng.random() < 0.5:
        changed["tokenizer.ggml.pre"] = rng.choice(["default", "llama-bpe", "qwen2", "none"])
    rewrite(source, target, changed, {})
    return f"tokenizer {changed}"


def _tensor(source: Path, target: Path, rng: Random) -> str:
    tensors = gguf.GGUFReader(source).tensors
    tensor = rng.choice(tensors)
    shape = [int(n) for n in tensor.shape]
    how = rng.choice(["type", "type", "shape", "shape", "values", "missing"])
    data: Any = None
    kinds = {}
    if how == "type":
        kind = rng.choice([*gguf.GGML_QUANT_SIZES])
        block, size = gguf.GGML_QUANT_SIZES[kind]
        n_bytes = max(shape[0] // block, 1) * size
        rows = [*shape[:0:-1]]
        data = np.frombuffer(rng.randbytes(math.prod(rows) * n_bytes), np.uint8)
        data, kinds = data.reshape(*rows, n_bytes), {tensor.name: kind}
        how = kind.name
    elif how == "shape":
        place = rng.randrange(len(shape))
        shape[place] = max(rng.choice([1, 2, shape[place] // 2, shape[place] + 1]), 1)
        if rng.random() < 0.3:
            shape.reverse()
        if rng.random() < 0.2:
            shape.append(rng.choice([1, 2]))
        data = np.ones(shape[::-1][:4], np.float32)
        how = str(shape)
    elif how == "values":
        data = np.full(shape[::-1], rng.choice([0.0, 1e30, math.nan, math.inf]), np.float32)
    rewrite(source, target, {}, {tensor.name: data}, kinds)
    return f"tensor {tensor.name} {how}"
