"""An EAGLE-3 head (Li et al. 2025) for targets of network.py; parameters bear their GGUF names.

A head decodes pairs: a token, and the state that the target had before it. The state is made of
what goes into three of the target's layers. Out come a distribution of the next token and a state
that goes with it, so that the head goes on by itself. Embeddings and output are the target's; of
the output, a head for few tokens has a copy of their rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from gguf import GGMLQuantizationType, GGUFReader, dequantize
from network import Config, Network, RMSNorm, rotary_table, rotate, shared, split
from torch import Tensor, nn
from torch.nn import functional


def layers_read(config: Config) -> tuple[int, int, int]:
    """Layers of the target whose inputs make a state: a low, a middle and the last one."""
    return config.layers // 6, config.layers // 2, config.layers - 1


class Attended(NamedTuple):
    """Keys and values (batch, heads, tokens, head_width) of the pairs of one pass."""

    keys: Tensor
    values: Tensor


class HeadBlock(nn.Module):
    """The layer: attention over [embedding; state], added to the state; then SwiGLU."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, ffn = config.width, config.ffn
        self.config = config
        self.attn_norm = RMSNorm(config)
        self.attn_norm_2 = RMSNorm(config)
        self.attn_q = nn.Linear(2 * width, width, bias=False)
        self.attn_k = nn.Linear(2 * width, config.kv_width, bias=False)
        self.attn_v = nn.Linear(2 * width, config.kv_width, bias=False)
        self.attn_output = nn.Linear(width, width, bias=False)
        self.ffn_norm = RMSNorm(config)
        self.ffn_gate = nn.Linear(width, ffn, bias=False)
        self.ffn_up = nn.Linear(width, ffn, bias=False)
        self.ffn_down = nn.Linear(ffn, width, bias=False)

    def forward(
        self, embedding: Tensor, state: Tensor, cos: Tensor, sin: Tensor, before: list[Attended]
    ) -> Tensor:
        """States (batch, tokens, width) to those that follow; appends its keys to `before`.

        before: of the passes before this one, see `attend`.
        """
        h = torch.cat((self.attn_norm(embedding), self.attn_norm_2(state)), dim=-1)
        projections = (self.attn_q, self.attn_k, self.attn_v)
        q, k, v = (split(project(h), self.config) for project in projections)
        k, v = shared(k, self.config), shared(v, self.config)
        before.append(Attended(rotate(k, cos, sin), v))
        attended = attend(rotate(q, cos, sin), before)
        x = state + self.attn_output(attended.transpose(1, 2).flatten(-2))
        h = self.ffn_norm(x)
        out: Tensor = x + self.ffn_down(functional.silu(self.ffn_gate(h)) * self.ffn_up(h))
        return out


def attend(q: Tensor, passes: list[Attended]) -> Tensor:
    """Attention of the last of `passes`, in which pair j is token n = len(passes) - 1 of a draft.

    Before it are the pairs 0 to j - n, of which the target's states are known (the first pass),
    and those of the draft: pair j - n + m of pass m. Of the first n pairs the result is
    meaningless: so early no such draft begins.
    """
    known, *drafted = passes
    if not drafted:
        return functional.scaled_dot_product_attention(q, *known, is_causal=True)
    n, tokens = len(drafted), q.shape[-2]
    q = q / q.shape[-1] ** 0.5
    seen = torch.ones(tokens, tokens, dtype=torch.bool).tril(-n)
    scores = [(q @ known.keys.transpose(-1, -2)).masked_fill(~seen, float("-inf"))]
    for m, one in enumerate(drafted, 1):
        scores.append((q * shift(one.keys, n - m)).sum(-1, keepdim=True))
    weights = torch.cat(scores, dim=-1).softmax(-1)
    result = weights[..., :tokens] @ known.values
    for m, one in enumerate(drafted, 1):
        place = tokens + m - 1
        result = result + weights[..., place : place + 1] * shift(one.values, n - m)
    return result


def shift(x: Tensor, n: int) -> Tensor:
    """Row j of (..., tokens, width) becomes row j + n; the first n are zeros."""
    return functional.pad(x, (0, 0, n, 0))[..., : x.shape[-2], :]


class Head(nn.Module):
    """The layer, what it reads and what it says: see `unroll`."""

    cos: Tensor
    sin: Tensor

    def __init__(self, config: Config, known: Tensor | None = None) -> None:
        """config: of the target; its heads and widths are the head's. known: token ids that the
        head can say; None: all."""
        super().__init__()
        self.config = config
        self.fc = nn.Linear(3 * config.width, config.width, bias=False)
        self.blk = nn.ModuleList([HeadBlock(config)])
        self.output_norm = RMSNorm(config)
        self.register_buffer("d2t", known)
        if known is not None:
            self.output = nn.Linear(config.width, len(known), bias=False).requires_grad_(False)
        cos, sin = rotary_table(config)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def begin_with(self, target: Network) -> None:
        """Start as the target's last layer, which reads the last of the states alone."""
        width = self.config.width
        last: Any = target.blk[-1]
        own: Any = self.blk[0]
        with torch.no_grad():
            for parameter in (self.fc.weight, own.attn_q.weight, own.attn_k.weight):
                parameter.zero_()
            own.attn_v.weight.zero_()
            self.fc.weight[:, -width:] = torch.eye(width)
            for name in ("attn_q", "attn_k", "attn_v"):
                getattr(own, name).weight[:, width:] = getattr(last, name).weight
            for name in ("attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"):
                getattr(own, name).load_state_dict(getattr(last, name).state_dict())
            own.attn_norm_2.load_state_dict(last.attn_norm.state_dict())
            self.output_norm.load_state_dict(target.output_norm.state_dict())
            if self.d2t is not None:
                self.output.weight.copy_(target.output_weight[self.d2t])

    def output_weight(self, target: Network) -> Tensor:
        """The target's, of the tokens that the head can say."""
        weight: Tensor = target.output_weight if self.d2t is None else self.output.weight
        return weight

    def said_of_all(self, logits: Tensor) -> Tensor:
        """Logits of the tokens that it can say, as those of all: the others are impossible."""
        if self.d2t is None:
            return logits
        every = logits.new_full((*logits.shape[:-1], self.config.vocabulary), float("-inf"))
        every[..., self.d2t] = logits
        return every

    def unroll(
        self, target: Network, tokens: Tensor, features: Tensor, passes: int
    ) -> list[Tensor]:
        """Logits of `passes` tokens drafted from every place.

        Args:
            target: Whose embeddings and output to use.
            tokens: (batch, n + 1) token ids.
            features: (batch, n, 3 width), of all tokens but the last.

        Returns:
            By pass, (batch, n, tokens that it can say): [j] is of the token j + 2, in pass m
            drafted from the states of the tokens up to j - m, so of no meaning for j < m.
        """
        embedding = target.token_embd(tokens[:, 1:])
        count = embedding.shape[1]
        cos, sin = self.cos[:count], self.sin[:count]
        output = self.output_weight(target)
        state = self.fc(features)
        before: list[Attended] = []
        said = []
        for _ in range(passes):
            state = self.blk[0](embedding, state, cos, sin, before)
            said.append(functional.linear(self.output_norm(state), output))
            state = shift(state, 1)
        return said


def load_head(path: Path, config: Config) -> Head:
    """Read a head for a target of these sizes from GGUF, dequantised to float32."""
    weights = {
        tensor.name: torch.tensor(
            tensor.data
            if tensor.tensor_type == GGMLQuantizationType.I64
            else dequantize(tensor.data, tensor.tensor_type)
        )
        for tensor in GGUFReader(path).tensors
    }
    head = Head(config, weights.get("d2t"))
    head.load_state_dict(weights)
    return head.eval()
