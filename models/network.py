"""The network: a language model of the Llama architecture. Parameters have their GGUF names."""

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

CONTEXT = 2048
"""Positions of the rotary table, and the context length in the metadata of the bundled files."""

MATRIX_TYPE = (
    torch.float32
    if torch.backends.cpu.get_cpu_capability() in {"DEFAULT", "AVX2"}
    else torch.bfloat16
)
"""Type for matrix multiplications. CPUs without bfloat16 instructions take five times as long in
bfloat16 as in float32."""


def fast_matrices() -> torch.autocast:
    """Context in which matrices are multiplied in MATRIX_TYPE."""
    return torch.autocast("cpu", torch.bfloat16, enabled=torch.bfloat16 == MATRIX_TYPE)


@dataclass(frozen=True)
class Config:
    """Sizes. The defaults are those of the bundled pair."""

    width: int
    layers: int
    heads: int
    ffn: int
    vocabulary: int
    heads_kv: int = 0
    """Heads of keys and values, each shared by several query heads; 0: as many as query heads."""
    rope_base: float = 10000.0
    norm_epsilon: float = 1e-5
    tied: bool = True
    """Whether the output matrix is the embedding matrix."""

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def kv_width(self) -> int:
        return (self.heads_kv or self.heads) * self.head_width


def rotary_table(config: Config, slower: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Cosines and sines, each (`CONTEXT`, head_width / 2). slower: divisors of the frequencies."""
    width = config.head_width
    frequency = config.rope_base ** (-torch.arange(0, width, 2).float() / width)
    if slower is not None:
        frequency = frequency / slower
    angle = torch.outer(torch.arange(CONTEXT).float(), frequency)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate neighbouring pairs (2i, 2i+1) of x (..., tokens, head_width).

    llama.cpp uses the same pairs for this architecture, so queries and keys are exported unchanged.
    (Models of Hugging Face pair i with i + head_width / 2; the conversion to GGUF permutes their
    rows.)
    """
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


def split(x: Tensor, config: Config) -> Tensor:
    """(batch, tokens, width) to (batch, heads, tokens, head_width)."""
    return x.unflatten(-1, (-1, config.head_width)).transpose(1, 2)


def shared(x: Tensor, config: Config) -> Tensor:
    """Keys or values, each head repeated for all query heads that share it."""
    return x.repeat_interleave(config.heads // x.shape[1], dim=1)


class Memory:
    """Keys and values of a layer, for texts that grow together."""

    def __init__(self, network: Network, seen: Tensor) -> None:
        """seen: (batch, tokens), the tokens that are attended to. It has the final length."""
        config, kind = network.config, network.token_embd.weight.dtype
        shape = (len(seen), config.kv_width // config.head_width, seen.shape[1], config.head_width)
        self.keys, self.values = torch.zeros(shape, dtype=kind), torch.zeros(shape, dtype=kind)
        self.seen = seen
        self.count = 0

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Add keys and values of n tokens; return the attention of their queries to all tokens."""
        n, sharing = q.shape[2], q.shape[1] // k.shape[1]
        first, self.count = self.count, self.count + n
        self.keys[:, :, first : self.count], self.values[:, :, first : self.count] = k, v
        own = torch.eye(n, self.count, dtype=torch.bool).roll(first, 1)  # so that no row is empty
        mask = self.seen[:, None, : self.count] & torch.ones_like(own).tril(first) | own
        found = functional.scaled_dot_product_attention(
            q.unflatten(1, (-1, sharing)).flatten(2, 3),
            self.keys[:, :, : self.count],
            self.values[:, :, : self.count],
            attn_mask=mask.repeat(1, sharing, 1)[:, None],
        )
        return found.unflatten(2, (sharing, n)).flatten(1, 2)


class RMSNorm(nn.Module):
    def __init__(self, config: Config, width: int | None = None) -> None:
        """width: size of the normalised vectors; default: the model's width."""
        super().__init__()
        self.epsilon = config.norm_epsilon
        self.weight = nn.Parameter(torch.ones(width or config.width))

    def forward(self, x: Tensor) -> Tensor:
        normed: Tensor = functional.rms_norm(x, (x.shape[-1],), self.weight, self.epsilon)
        return normed


class Block(nn.Module):
    """One layer: x + attention(norm(x)), then x + SwiGLU(norm(x)); x is (batch, tokens, width)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, ffn = config.width, config.ffn
        self.config = config
        self.attn_norm = RMSNorm(config)
        self.attn_q = nn.Linear(width, width, bias=False)
        self.attn_k = nn.Linear(width, config.kv_width, bias=False)
        self.attn_v = nn.Linear(width, config.kv_width, bias=False)
        self.attn_output = nn.Linear(width, width, bias=False)
        self.ffn_norm = RMSNorm(config)
        self.ffn_gate = nn.Linear(width, ffn, bias=False)
        self.ffn_up = nn.Linear(width, ffn, bias=False)
        self.ffn_down = nn.Linear(ffn, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, memory: Memory | None = None) -> Tensor:
        h = self.attn_norm(x)
        projections = (self.attn_q, self.attn_k, self.attn_v)
        q, k, v = (split(project(h), self.config) for project in projections)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if memory is None:
            k, v = shared(k, self.config), shared(v, self.config)
            attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            attended = memory.attend(q, k, v)
        x = x + self.attn_output(attended.transpose(1, 2).flatten(-2))
        h = self.ffn_norm(x)
        out: Tensor = x + self.ffn_down(functional.silu(self.ffn_gate(h)) * self.ffn_up(h))
        return out


class Network(nn.Module):
    """Token ids (batch, tokens) to logits (batch, tokens, vocabulary)."""

    cos: Tensor
    sin: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.token_embd = nn.Embedding(config.vocabulary, config.width)
        self.blk = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.output_norm = RMSNorm(config)
        if not config.tied:
            self.output = nn.Linear(config.width, config.vocabulary, bias=False)
        cos, sin = rotary_table(config)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                # GPT-2's initialisation: matrices that write to the residual stream start smaller.
                residual = name.endswith(("attn_output.weight", "ffn_down.weight"))
                std = 0.02 / math.sqrt(2 * config.layers) if residual else 0.02
                nn.init.normal_(parameter, std=std)

    @property
    def output_weight(self) -> Tensor:
        """The matrix for logits, (vocabulary, width)."""
        weight: Tensor = (self.token_embd if self.config.tied else self.output).weight
        return weight

    def forward(self, tokens: Tensor) -> Tensor:
        return functional.linear(self.with_inputs(tokens, ())[0], self.output_weight)

    def with_inputs(self, tokens: Tensor, layers: Sequence[int]) -> tuple[Tensor, list[Tensor]]:
        """Return the input of `output_weight`, and the inputs of these layers in order, each
        (batch, tokens, width)."""
        count = tokens.shape[1]
        cos, sin = self.cos[:count], self.sin[:count]
        x = self.token_embd(tokens)
        inputs = []
        for block in self.blk:
            inputs.append(x)
            x = block(x, cos, sin)
        return self.output_norm(x), [inputs[layer] for layer in layers]

    def go_on(self, tokens: Tensor, memories: list[Memory]) -> Tensor:
        """Logits (batch, vocabulary) after these tokens (batch, n). The memories of all layers have
        the tokens before them."""
        first = memories[0].count
        cos, sin = (table[first : first + tokens.shape[1]] for table in (self.cos, self.sin))
        x = self.token_embd(tokens)
        for block, memory in zip(self.blk, memories, strict=True):
            x = block(x, cos, sin, memory)
        return functional.linear(self.output_norm(x[:, -1]), self.output_weight)


def save(config: Config, network: nn.Module, path: Path) -> None:
    """Write the weights (float32) as {"cfg": sizes, "sd": state dict}."""
    write_atomically({"cfg": asdict(config), "sd": network.state_dict()}, path)


def write_atomically(state: dict[str, Any], path: Path) -> None:
    """`torch.save` next to `path`, then rename: after a kill, either the old or the new file is
    there."""
    part = path.with_name(path.name + ".part")
    torch.save(state, part)
    os.replace(part, path)


def load(path: Path) -> tuple[Network, Tokenizer]:
    """Read a network of the bundled pair and its tokenizer, ready to evaluate.

    A GGUF file has both (quantised weights are dequantised to float32). For a `.pt` file,
    `tokenizer.json` is in the same folder.
    """
    if path.suffix == ".gguf":
        return load_gguf(path), read_tokenizer(GGUFReader(path))
    return load_weights(path), Tokenizer.from_file(str(path.with_name("tokenizer.json")))


def load_gguf(path: Path) -> Network:
    """Read any dense GGUF of the llama architecture, dequantised to float32, ready to evaluate.

    Exits with a message for other models.
    """
    reader = GGUFReader(path)
    facts = {name: field.contents() for name, field in reader.fields.items()}
    if (architecture := facts["general.architecture"]) != "llama":
        raise SystemExit(f"{path} has the architecture {architecture}, not llama")

    def fact(key: str, default: Any = None) -> Any:
        return facts.get(f"llama.{key}", default)

    weights = {
        tensor.name: torch.tensor(dequantize(tensor.data, tensor.tensor_type))
        for tensor in reader.tensors
    }
    vocabulary, width = weights["token_embd.weight"].shape
    config = Config(
        width=width,
        layers=fact("block_count"),
        heads=fact("attention.head_count"),
        ffn=fact("feed_forward_length"),
        vocabulary=vocabulary,
        heads_kv=fact("attention.head_count_kv", 0),
        rope_base=fact("rope.freq_base", 10000.0),
        norm_epsilon=fact("attention.layer_norm_rms_epsilon"),
        tied="output.weight" not in weights,
    )
    lengths = {fact(key, config.head_width) for key in _LENGTHS}
    if lengths != {config.head_width} or fact("rope.scaling.type", "none") != "none":
        raise SystemExit(
            f"{path} has rotary positions or heads of a kind that is not supported here"
        )
    network = Network(config)
    network.cos, network.sin = rotary_table(config, weights.pop("rope_freqs.weight", None))
    if unknown := weights.keys() ^ network.state_dict().keys():
        raise SystemExit(
            f"{path} is not a dense model without biases: {', '.join(sorted(unknown))}"
        )
    network.load_state_dict(weights)
    return network.eval()


_LENGTHS = ("rope.dimension_count", "attention.key_length", "attention.value_length")
"""Sizes that must equal the width of a head: width / heads."""


def load_weights(path: Path) -> Network:
    """Read a file of `save`."""
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
