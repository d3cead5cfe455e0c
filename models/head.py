"""An EAGLE-3 head (Li et al. 2025) for targets of network.py. Parameters have their GGUF names.

A head decodes pairs of a token and the target's state before it. The state is made from the inputs
of three of the target's layers. The output is a distribution of the next token and a state for it,
so that the head can continue by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from network import Config, Network, RMSNorm, fast_matrices, rotate, shared, split
from state_reader import StateReader
from torch import Tensor, nn
from torch.nn import functional

PASSES = 3
"""Tokens drafted from every position in training. All but the first use the head's own states."""

PASS_SHARE = 0.8
"""Weight of a pass's loss relative to that of the pass before it."""


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
        """Compute the next states from states (batch, tokens, width).

        before: keys and values of the passes before this one, see `attend`; those of this pass are
        appended.
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

    Before it are the pairs 0 to j - n with the target's states (the first pass), and those of the
    draft: pair j - n + m of pass m. For the first n pairs the result is meaningless, because no
    draft begins so early.
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


class Head(StateReader):
    """The whole head; see `unroll`."""

    name, title, architecture, layers = "head", "EAGLE-3 head", "eagle3", 1

    def __init__(self, config: Config, known: Tensor | None = None) -> None:
        super().__init__(config, known)
        self.blk = nn.ModuleList([HeadBlock(config)])
        self.output_norm = RMSNorm(config)

    def begin_with(self, target: Network) -> None:
        """Start as a copy of the target's last layer, reading only the last of the states."""
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
        self.take_output(target)

    def unroll(
        self, target: Network, tokens: Tensor, features: Tensor, passes: int
    ) -> list[Tensor]:
        """Logits of `passes` tokens drafted from every position.

        Args:
            target: The model whose embeddings and output are used.
            tokens: (batch, n + 1) token ids.
            features: (batch, n, 3 width), for all tokens except the last.
            passes: Number of tokens.

        Returns:
            For each pass, (batch, n, tokens that it can draft): [j] is for token j + 2. In pass m
            it is drafted from the states of the tokens up to j - m, so it is meaningless for j < m.
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

    def by_place(
        self, target: Network, tokens: Tensor, features: Tensor, places: int
    ) -> list[Tensor]:
        said = self.unroll(target, tokens, features[:, :-1], places)
        return [one[0, place:] for place, one in enumerate(said)]

    def divergences(self, target: Network, window: Tensor, passes: int) -> list[Tensor]:
        """KL divergence, by pass, of the head's distributions from the target's on a window, both
        restricted to the tokens that the head can draft."""
        logits, features = self.read(target, window)
        with fast_matrices():
            drafted = self.unroll(target, window, features[:, :-1], passes)
        with torch.no_grad():
            logits = logits[:, 1:]
            wanted = logits.softmax(-1)
            entropy = logits.logsumexp(-1) - (wanted * logits).sum(-1)
        found = []
        for n, said in enumerate(drafted):
            said = said.float()
            missed = said.logsumexp(-1) - (wanted * said).sum(-1) - entropy
            found.append(missed[:, n:].mean())
        return found

    def loss(self, target: Network, window: Tensor) -> Tensor:
        total = torch.zeros(())
        for n, divergence in enumerate(self.divergences(target, window, PASSES)):
            total = total + PASS_SHARE**n * divergence
        return total

    def judge(self, target: Network, window: Tensor) -> Tensor:
        return self.divergences(target, window, 1)[0]
