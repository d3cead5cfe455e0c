"""Drafts of EAGLE-3 heads in plain numpy, for dense targets (llama and qwen3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Weights:
    """The dequantised tensors of a GGUF file, and its header values."""

    def __init__(self, path: Path) -> None:
        reader = gguf.GGUFReader(path)
        self.architecture = reader.fields["general.architecture"].contents()
        self._fields = reader.fields
        self.tensors: dict[str, NDArray[Any]] = {
            tensor.name: tensor.data
            if tensor.tensor_type == gguf.GGMLQuantizationType.I64
            else gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
            for tensor in reader.tensors
        }

    def fact(self, name: str, otherwise: Any = None) -> Any:
        field = self._fields.get(f"{self.architecture}.{name}")
        return otherwise if field is None else field.contents()

    def normed(self, x: Floats, norm: str) -> Floats:
        epsilon = self.fact("attention.layer_norm_rms_epsilon")
        scale = np.sqrt((x**2).mean(-1, keepdims=True) + epsilon)
        return x / scale * self.tensors[norm + ".weight"]

    def times(self, x: Floats, matrix: str) -> Floats:
        return x @ self.tensors[matrix + ".weight"].T

    def layer(self, n: str, h: Floats, x: Floats) -> Floats:
        """Return the output of layer `n`: attention reads h, and its result is added to x; by
        row."""
        q, k, v = (self.heads(h, n, name) for name in "qkv")
        x = x + self.times(attended(q, k, v, causal=True), f"{n}.attn_output")
        return x + self.feed_forward(n, self.normed(x, f"{n}.ffn_norm"))

    def heads(self, h: Floats, n: str, name: str, first: int = 0) -> Floats:
        """Return the queries, keys or values of layer `n`, [row][head], for rows from position
        `first` on."""
        x = self.times(h, f"{n}.attn_{name}")
        x = x.reshape(len(h), -1, self.fact("rope.dimension_count"))
        if name == "v":
            return x
        if f"{n}.attn_{name}_norm.weight" in self.tensors:
            x = self.normed(x, f"{n}.attn_{name}_norm")
        turn = rotated if self.architecture in ("llama", "eagle3") else rotated_by_halves
        return turn(x, self._angles(first, len(h)))

    def feed_forward(self, n: str, h: Floats) -> Floats:
        gate = self.times(h, f"{n}.ffn_gate")
        gate *= self.times(h, f"{n}.ffn_up") / (1 + np.exp(-gate))
        return self.times(gate, f"{n}.ffn_down")

    def _angles(self, first: int, n_rows: int) -> Floats:
        n = self.fact("rope.dimension_count")
        base = self.fact("rope.freq_base", 10000.0)
        positions = np.arange(first, first + n_rows)
        return np.outer(positions, base ** (-np.arange(0, n, 2) / n))[:, None]


def attended(q: Floats, k: Floats, v: Floats, *, causal: bool) -> Floats:
    """Return the attention of rows to rows, with all heads of a row concatenated."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[-1])
    if causal:
        scores[:, ~np.tri(len(q), len(k), len(k) - len(q), dtype=bool)] = -np.inf
    return np.einsum("hij,jhd->ihd", softmax(scores), v).reshape(len(q), -1)


def rotated_by_halves(x: Floats, angles: Floats) -> Floats:
    low, high = np.split(x, 2, axis=-1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate((low * cos - high * sin, low * sin + high * cos), axis=-1)


def rotated(x: Floats, angles: Floats) -> Floats:
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.stack((even * cos - odd * sin, even * sin + odd * cos), axis=-1).reshape(x.shape)


def softmax(x: Floats) -> Floats:
    e = np.exp(x - x.max(-1, keepdims=True))
    result: Floats = e / e.sum(-1, keepdims=True)
    return result


def layer_inputs(target: Weights, tokens: list[int]) -> list[Floats]:
    """Return the input of every layer."""
    x = target.tensors["token_embd.weight"][tokens]
    inputs = []
    for i in range(target.fact("block_count")):
        inputs.append(x)
        x = target.layer(f"blk.{i}", target.normed(x, f"blk.{i}.attn_norm"), x)
    return inputs


class Drafts:
    """Computes a head's draft after any prefix of a text."""

    def __init__(self, target: Path, head: Path, tokens: list[int]) -> None:
        self.tokens = tokens
        self.head, owner = Weights(head), Weights(target)
        inputs = layer_inputs(owner, tokens)
        features = np.concatenate([inputs[i] for i in self.head.fact("target_layers")], axis=-1)
        self.states = self.head.times(features, "fc")
        shared = owner.tensors | self.head.tensors
        self.embeddings = shared["token_embd.weight"]
        self.output = shared.get("output.weight", self.embeddings)
        self.known = shared.get("d2t", np.arange(len(self.output)))

    def after(self, n: int, length: int) -> list[tuple[int, float, float]]:
        """Return a greedy draft of `length` tokens after the first n: each token, its probability,
        and its lead over the second one.

        The target has decoded the first n - 1 tokens, so the head has their states.
        """
        tokens, states = self.tokens[:n], self.states[: n - 1]
        drafted = []
        for _ in range(length):
            # Everything is computed again, because there is no KV memory here.
            embeddings = self.head.normed(self.embeddings[tokens[1:]], "blk.0.attn_norm")
            h = np.concatenate([embeddings, self.head.normed(states, "blk.0.attn_norm_2")], axis=-1)
            last = self.head.layer("blk.0", h, states)[-1:]
            said = softmax(self.head.normed(last, "output_norm") @ self.output.T)[0]
            second, first = np.argsort(said)[-2:]
            token = int(self.known[first])
            drafted.append((token, float(said[first]), float(said[first] - said[second])))
            tokens = [*tokens, token]
            states = np.concatenate([states, last])
        return drafted
