"""A block drafter (DSpark) for targets of network.py. Parameters have their GGUF names.

Its layers attend to states of the target for the text: the inputs of three of its layers, combined
to one state for each token except the last. The last token and mask tokens form a block, whose rows
attend to each other in both directions. Row i predicts the token i + 1 positions after the last
one, from its own logits and a bias that depends on the token before (the Markov head). There is no
confidence head: a test showed that it predicts acceptance less well than the drafter's
probabilities.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from network import Config, Network, RMSNorm, fast_matrices, shared, split
from state_reader import StateReader
from torch import Tensor, nn
from torch.nn import functional

BLOCK = 8
"""Rows of a block. Each drafts a token."""

RANK = 64
"""Size of the Markov head's embedding of a token."""

MASK = 0
"""Token id of the rows after the last token: the end of a file, which no text continues."""

STRIDE = 4
"""Tokens between the blocks of a window in training."""

ROW_SHARE = 0.8
"""Weight of a row's loss relative to that of the row before it."""


class States(NamedTuple):
    """Keys and values (batch, heads, tokens, head_width) of the text."""

    keys: Tensor
    values: Tensor


class BlockLayer(nn.Module):
    """Attention to the states of the text and to its own block, then SwiGLU."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, ffn = config.width, config.ffn
        self.config = config
        self.attn_norm = RMSNorm(config)
        self.attn_q = nn.Linear(width, width, bias=False)
        self.attn_k = nn.Linear(width, config.kv_width, bias=False)
        self.attn_v = nn.Linear(width, config.kv_width, bias=False)
        self.attn_q_norm = RMSNorm(config, config.head_width)
        self.attn_k_norm = RMSNorm(config, config.head_width)
        self.attn_output = nn.Linear(width, width, bias=False)
        self.ffn_norm = RMSNorm(config)
        self.ffn_gate = nn.Linear(width, ffn, bias=False)
        self.ffn_up = nn.Linear(width, ffn, bias=False)
        self.ffn_down = nn.Linear(ffn, width, bias=False)

    def keys_and_values(self, x: Tensor, cos: Tensor, sin: Tensor) -> States:
        keys = rotate_halves(self.attn_k_norm(split(self.attn_k(x), self.config)), cos, sin)
        values = split(self.attn_v(x), self.config)
        return States(shared(keys, self.config), shared(values, self.config))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, text: States, seen: Tensor) -> Tensor:
        """x: (batch, blocks x rows, width). seen: (blocks x rows, tokens), whether a row attends to
        a state of the text."""
        h = self.attn_norm(x)
        q = rotate_halves(self.attn_q_norm(split(self.attn_q(h), self.config)), cos, sin)
        attended = attend(q, text, self.keys_and_values(h, cos, sin), seen)
        x = x + self.attn_output(attended.transpose(1, 2).flatten(-2))
        h = self.ffn_norm(x)
        out: Tensor = x + self.ffn_down(functional.silu(self.ffn_gate(h)) * self.ffn_up(h))
        return out


def attend(q: Tensor, text: States, own: States, seen: Tensor) -> Tensor:
    """Attention of (batch, heads, blocks x rows, head_width) to the text, and within each block."""
    tokens = text.keys.shape[-2]
    q = q / q.shape[-1] ** 0.5
    to_text = (q @ text.keys.transpose(-1, -2)).masked_fill(~seen, float("-inf"))
    keys, values = (x.unflatten(-2, (-1, BLOCK)) for x in own)
    to_block = (q.unflatten(-2, (-1, BLOCK)) @ keys.transpose(-1, -2)).flatten(-3, -2)
    weights = torch.cat((to_text, to_block), dim=-1).softmax(-1)
    of_block = weights[..., tokens:].unflatten(-2, (-1, BLOCK)) @ values
    return weights[..., :tokens] @ text.values + of_block.flatten(-3, -2)


def rotate_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate pairs (i, i + head_width / 2), as in llama.cpp for this architecture."""
    one, other = x.chunk(2, dim=-1)
    return torch.cat((one * cos - other * sin, one * sin + other * cos), dim=-1)


class BlockDrafter(StateReader):
    """The whole drafter; see `draft`."""

    name, title, architecture, layers = "dspark", "DSpark block drafter", "dflash", 2
    longest = BLOCK
    enc: nn.ModuleDict

    def __init__(self, config: Config, known: Tensor | None = None) -> None:
        super().__init__(config, known)
        self.enc = nn.ModuleDict({"output_norm": RMSNorm(config)})
        self.blk = nn.ModuleList(BlockLayer(config) for _ in range(self.layers))
        self.output_norm = RMSNorm(config)
        self.markov_w1 = nn.Embedding(config.vocabulary, RANK)
        self.markov_w2 = nn.Linear(RANK, self.n_known, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                residual = name.endswith(("attn_output.weight", "ffn_down.weight"))
                std = 0.02 / math.sqrt(2 * self.layers) if residual else 0.02
                nn.init.normal_(parameter, std=std)
        nn.init.zeros_(self.markov_w2.weight)

    def begin_with(self, target: Network) -> None:
        """Start as a copy of the target's last layers, reading only the last of the states."""
        width, per_head = self.config.width, self.config.head_width
        with torch.no_grad():
            self.fc.weight.zero_()
            self.fc.weight[:, -width:] = torch.eye(width)
            # llama.cpp rotates neighbouring pairs in the target, but halves here.
            halves = torch.cat((torch.arange(0, per_head, 2), torch.arange(1, per_head, 2)))
            for own, theirs in zip(self.blk, list(target.blk)[-self.layers :], strict=True):
                layer: Any = own
                for name, weight in theirs.state_dict().items():
                    if name in ("attn_q.weight", "attn_k.weight"):
                        weight = weight.unflatten(0, (-1, per_head))[:, halves].flatten(0, 1)
                    layer.get_parameter(name).copy_(weight)
            last: Any = target.blk[-1]
            self.enc["output_norm"].load_state_dict(last.attn_norm.state_dict())
            self.output_norm.load_state_dict(target.output_norm.state_dict())
        self.take_output(target)

    def draft(self, target: Network, tokens: Tensor, features: Tensor, last: Tensor) -> Tensor:
        """Draft blocks. The bias of a row is that of the text's token before it.

        Args:
            target: The model whose embeddings and output are used.
            tokens: (batch, n) token ids.
            features: (batch, n, 3 width), the inputs of the three layers.
            last: (blocks,), positions of the blocks' last tokens in the text; BLOCK - 1 more
                follow.

        Returns:
            Logits (batch, blocks, BLOCK, tokens that it can draft).
        """
        count = tokens.shape[1]
        places = last[:, None] + torch.arange(BLOCK)
        known = tokens[:, places]
        rows = torch.full_like(known, MASK)
        rows[..., 0] = known[..., 0]
        x = target.token_embd(rows.flatten(1))
        where = places.flatten()
        seen = torch.arange(count) < last.repeat_interleave(BLOCK)[:, None]
        state = self.enc["output_norm"](self.fc(features))
        layers: Any = self.blk
        for layer in layers:
            text = layer.keys_and_values(state, self.cos[:count], self.sin[:count])
            x = layer(x, self.cos[where], self.sin[where], text, seen)
        x = self.output_norm(x).unflatten(1, (-1, BLOCK))
        logits = functional.linear(x, self.output_weight(target))
        return logits + self.markov_w2(self.markov_w1(known))

    def by_place(
        self, target: Network, tokens: Tensor, features: Tensor, places: int
    ) -> list[Tensor]:
        last = torch.arange(1, tokens.shape[1] - BLOCK + 1)
        logits = self.draft(target, tokens, features, last)[0]
        return list(logits[:, :places].unbind(1))

    def divergences(self, target: Network, window: Tensor) -> Tensor:
        """KL divergence (BLOCK,), by row, of the draft's distributions from the target's on a
        window, both restricted to the tokens that the drafter can draft."""
        last = torch.arange(1, window.shape[1] - BLOCK + 1, STRIDE)
        wanted, features = self.read(target, window)
        with fast_matrices():
            said = self.draft(target, window, features, last)
        said = said.float().log_softmax(-1)
        with torch.no_grad():
            log_p = wanted.log_softmax(-1)[:, last[:, None] + torch.arange(BLOCK)]
        divergence = functional.kl_div(said, log_p, log_target=True, reduction="none").sum(-1)
        return divergence.mean((0, 1))

    def loss(self, target: Network, window: Tensor) -> Tensor:
        return (self.divergences(target, window) * ROW_SHARE ** torch.arange(BLOCK)).sum()

    def judge(self, target: Network, window: Tensor) -> Tensor:
        return self.divergences(target, window).mean()
