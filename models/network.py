"""The network: a Llama-architecture language model whose parameters bear their GGUF names."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from corpus import read_tokenizer
from gguf import GGUFReader, dequantize
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

NORM_EPSILON = 1e-5
ROPE_BASE = 10000.0
CONTEXT = 2048
"""Positions the rotary table holds; also the context length the GGUF declares."""


@dataclass(frozen=True)
class Config:
    """Sizes. Every attention head has its own keys and values; input and output are tied."""

    width: int
    layers: int
    heads: int
    ffn: int
    vocabulary: int

    @property
    def head_width(self) -> int:
        return self.width // self.heads


def rotary_table(head_width: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines, each (`CONTEXT`, head_width / 2)."""
    frequency = ROPE_BASE ** (-torch.arange(0, head_width, 2).float() / head_width)
    angle = torch.outer(torch.arange(CONTEXT).float(), frequency)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate neighbouring pairs (2i, 2i+1) of x (..., tokens, head_width).

    llama.cpp pairs the same way for this architecture, so queries and keys are exported
    as they are. (Files converted from Hugging Face pair i with i + head_width / 2 first,
    and their rows are permuted on the way to GGUF.)
    """
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        normed: Tensor = functional.rms_norm(x, (x.shape[-1],), self.weight, NORM_EPSILON)
        return normed


class Block(nn.Module):
    """One layer: x + attention(norm(x)), then x + SwiGLU(norm(x)); x is (batch, tokens, width)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, ffn = config.width, config.ffn
        self.heads = config.heads
        self.attn_norm = RMSNorm(width)
        self.attn_q = nn.Linear(width, width, bias=False)
        self.attn_k = nn.Linear(width, width, bias=False)
        self.attn_v = nn.Linear(width, width, bias=False)
        self.attn_output = nn.Linear(width, width, bias=False)
        self.ffn_norm = RMSNorm(width)
        self.ffn_gate = nn.Linear(width, ffn, bias=False)
        self.ffn_up = nn.Linear(width, ffn, bias=False)
        self.ffn_down = nn.Linear(ffn, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        h = self.attn_norm(x)
        q, k, v = (self._split(project(h)) for project in (self.attn_q, self.attn_k, self.attn_v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_output(attended.transpose(1, 2).flatten(-2))
        h = self.ffn_norm(x)
        out: Tensor = x + self.ffn_down(functional.silu(self.ffn_gate(h)) * self.ffn_up(h))
        return out

    def _split(self, x: Tensor) -> Tensor:
        """(batch, tokens, width) to (batch, heads, tokens, head_width)."""
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)


class Network(nn.Module):
    """Token ids (batch, tokens) to logits (batch, tokens, vocabulary)."""

    cos: Tensor
    sin: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.token_embd = nn.Embedding(config.vocabulary, config.width)
        self.blk = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.output_norm = RMSNorm(config.width)
        cos, sin = rotary_table(config.head_width)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                # GPT-2's initialisation: what is added to the residual stream starts smaller.
                residual = name.endswith(("attn_output.weight", "ffn_down.weight"))
                std = 0.02 / math.sqrt(2 * config.layers) if residual else 0.02
                nn.init.normal_(parameter, std=std)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.with_inputs(tokens, ())[0]

    def with_inputs(self, tokens: Tensor, layers: Sequence[int]) -> tuple[Tensor, list[Tensor]]:
        """Logits, and what went into these layers, each (batch, tokens, width), in their order."""
        count = tokens.shape[1]
        cos, sin = self.cos[:count], self.sin[:count]
        x = self.token_embd(tokens)
        inputs = []
        for block in self.blk:
            inputs.append(x)
            x = block(x, cos, sin)
        logits = functional.linear(self.output_norm(x), self.token_embd.weight)
        return logits, [inputs[layer] for layer in layers]


def save(config: Config, network: nn.Module, path: Path) -> None:
    """Write the weights (float32) as {"cfg": sizes, "sd": state dict}."""
    write_atomically({"cfg": asdict(config), "sd": network.state_dict()}, path)


def write_atomically(state: dict[str, Any], path: Path) -> None:
    """`torch.save` beside `path`, then rename: a kill leaves the old file or the new one."""
    part = path.with_name(path.name + ".part")
    torch.save(state, part)
    os.replace(part, path)


def load(path: Path) -> tuple[Network, Tokenizer]:
    """Read a network and its tokenizer, ready to evaluate.

    A GGUF file holds both (quantised weights come back dequantised to float32); a `.pt` file
    has its `tokenizer.json` in the same folder.
    """
    if path.suffix == ".gguf":
        reader = GGUFReader(path)
        return _from_gguf(reader), read_tokenizer(reader)
    return load_weights(path), Tokenizer.from_file(str(path.with_name("tokenizer.json")))


def _from_gguf(reader: GGUFReader) -> Network:
    def size(key: str) -> int:
        return int(reader.fields[f"llama.{key}"].contents())

    config = Config(
        width=size("embedding_length"),
        layers=size("block_count"),
        heads=size("attention.head_count"),
        ffn=size("feed_forward_length"),
        vocabulary=size("vocab_size"),
    )
    weights = {
        tensor.name: torch.tensor(dequantize(tensor.data, tensor.tensor_type))
        for tensor in reader.tensors
    }
    return _assemble(config, weights)


def load_weights(path: Path) -> Network:
    """Read what `save` wrote."""
    checkpoint = torch.load(path, weights_only=True)
    config, weights = checkpoint["cfg"], checkpoint["sd"]
    if "d" in config:  # the bundled pair's own checkpoints were written with short names
        weights = {_long_name(name): weight for name, weight in weights.items()}
        config = {
            "width": config["d"],
            "layers": config["l"],
            "heads": config["h"],
            "ffn": config["ff"],
            "vocabulary": len(weights["token_embd.weight"]),
        }
    return _assemble(Config(**config), weights)


_LONG = {
    "b": "blk",
    "e": "token_embd",
    "n": "output_norm",
    "n1": "attn_norm",
    "n2": "ffn_norm",
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "o": "attn_output",
    "g": "ffn_gate",
    "u": "ffn_up",
    "dn": "ffn_down",
    "w": "weight",
}


def _long_name(name: str) -> str:
    """`b.0.dn.weight` to `blk.0.ffn_down.weight`."""
    return ".".join(_LONG.get(part, part) for part in name.split("."))


def _assemble(config: Config, weights: dict[str, Tensor]) -> Network:
    network = Network(config)
    network.load_state_dict(weights)
    return network.eval()
