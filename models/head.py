"""An EAGLE-3 head: one layer that goes on from a frozen target's hidden states (Li et al. 2025)."""

from __future__ import annotations

from pathlib import Path

import gguf
import torch
from export import TYPES, _add_tokenizer
from gguf import GGMLQuantizationType, GGUFWriter
from network import CONTEXT, NORM_EPSILON, ROPE_BASE, Network, RMSNorm, rotary_table, rotate
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

LAYERS = (1, 3, 5)
"""Layers of the target whose inputs are read: low, middle and high."""


class Head(nn.Module):
    """Parameters bear their GGUF names. Embeddings and output are the target's."""

    cos: Tensor
    sin: Tensor

    def __init__(self, width: int, heads: int, ffn: int) -> None:
        super().__init__()
        self.width, self.heads, self.ffn = width, heads, ffn
        self.fc = nn.Linear(3 * width, width, bias=False)
        self.attn_norm = RMSNorm(width)
        self.attn_norm_2 = RMSNorm(width)
        self.attn_q = nn.Linear(2 * width, width, bias=False)
        self.attn_k = nn.Linear(2 * width, width, bias=False)
        self.attn_v = nn.Linear(2 * width, width, bias=False)
        self.attn_output = nn.Linear(width, width, bias=False)
        self.ffn_norm = RMSNorm(width)
        self.ffn_gate = nn.Linear(width, ffn, bias=False)
        self.ffn_up = nn.Linear(width, ffn, bias=False)
        self.ffn_down = nn.Linear(ffn, width, bias=False)
        self.output_norm = RMSNorm(width)
        cos, sin = rotary_table(width // heads)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, features: Tensor, embeddings: Tensor, steps: int) -> list[Tensor]:
        """Draft `steps` tokens behind every position, as when drafting: from the target's states,
        then from its own ("training-time test").

        Args:
            features: Of the tokens at 0, ..., n - 1: (batch, n, 3 width).
            embeddings: Of the tokens behind them, at 1, ..., n: (batch, n, width).
            steps: How many.

        Returns:
            Of step s at i: the normed state that foretells the token at i + 2, drafted s steps
            behind what the target has seen; worth nothing where i < s. Each (batch, n, width).
        """
        count = features.shape[1]
        cos, sin = self.cos[:count], self.sin[:count]
        tokens = self.attn_norm(embeddings)
        state = self.fc(features)
        keys: list[Tensor] = []
        values: list[Tensor] = []
        normed = []
        for _step in range(steps):
            x = torch.cat([tokens, self.attn_norm_2(state)], dim=-1)
            q, k, v = (
                self._split(project(x)) for project in (self.attn_q, self.attn_k, self.attn_v)
            )
            keys.append(rotate(k, cos, sin))
            values.append(v)
            state = state + self._attend(rotate(q, cos, sin), keys, values)
            h = self.ffn_norm(state)
            state = state + self.ffn_down(functional.silu(self.ffn_gate(h)) * self.ffn_up(h))
            normed.append(self.output_norm(state))
            state = functional.pad(state, (0, 0, 1, 0))[:, :-1]  # the next pair has this one's
        return normed

    def _attend(self, q: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
        """A draft of s tokens sees the pairs that have the target's states, but for the last s, and
        behind them those of its own."""
        step, count = len(keys) - 1, q.shape[-2]
        scale = q.shape[-1] ** -0.5
        seen = torch.ones(count, count, dtype=torch.bool).tril(-step)
        scores = [(q @ keys[0].transpose(-1, -2) * scale).masked_fill(~seen, -torch.inf)]
        own = []
        for earlier in range(1, step + 1):
            shift = step - earlier
            key, value = (
                functional.pad(x[earlier], (0, 0, shift, 0))[..., :count, :] for x in (keys, values)
            )
            scores.append((q * key).sum(-1, keepdim=True) * scale)
            own.append(value)
        if step > 0:  # the first tokens of all see nothing else
            scores[0][..., 0] = torch.where(seen.any(-1), scores[0][..., 0], 0.0)
        weights = torch.cat(scores, dim=-1).softmax(-1)
        mixed = weights[..., :count] @ values[0]
        for i, value in enumerate(own):
            mixed = mixed + weights[..., count + i, None] * value
        out: Tensor = self.attn_output(mixed.transpose(1, 2).flatten(-2))
        return out

    def _split(self, x: Tensor) -> Tensor:
        """(batch, tokens, width) to (batch, heads, tokens, head_width)."""
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)


@torch.no_grad()
def read(target: Network, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """What goes into LAYERS, side by side (batch, tokens, 3 width), and the logits."""
    cos, sin = target.cos[: tokens.shape[1]], target.sin[: tokens.shape[1]]
    x = target.token_embd(tokens)
    features = []
    for layer, block in enumerate(target.blk):
        if layer in LAYERS:
            features.append(x)
        x = block(x, cos, sin)
    logits = functional.linear(target.output_norm(x), target.token_embd.weight)
    return torch.cat(features, dim=-1), logits


def export(head: Head, target: Network, tokenizer: Tokenizer, path: Path, weight_type: str) -> None:
    """Write `path`, weights as `weight_type` (a key of `export.TYPES`)."""
    tensor_type, file_type = TYPES[weight_type]
    writer = GGUFWriter(path, "eagle3")
    writer.add_type("model")
    writer.add_name("specllama-stdlib-head")
    writer.add_license("PSF-2.0")
    writer.add_vocab_size(target.config.vocabulary)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(head.width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(head.ffn)
    writer.add_head_count(head.heads)
    writer.add_head_count_kv(head.heads)
    writer.add_layer_norm_rms_eps(NORM_EPSILON)
    writer.add_rope_dimension_count(head.width // head.heads)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_array("eagle3.target_layers", list(LAYERS))
    writer.add_uint32("eagle3.target_hidden_size", target.config.width)
    writer.add_file_type(file_type)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    _add_tokenizer(writer, tokenizer)
    for name, parameter in head.state_dict().items():
        weight = parameter.float().numpy()
        kind = tensor_type if weight.ndim == 2 else GGMLQuantizationType.F32
        whole = name if name.startswith(("fc.", "output_norm.")) else f"blk.0.{name}"
        writer.add_tensor(whole, gguf.quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
