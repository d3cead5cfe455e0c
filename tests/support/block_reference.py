"""Drafts of block drafters in plain numpy: DFlash, DFlash2 and DSpark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from head_reference import Floats, Weights, attended, layer_inputs, softmax


@dataclass
class Drafted:
    """One token of a draft.

    Attributes:
        token: The most likely token.
        confidence: The drafter's probability that it is right.
        lead: Its probability minus that of the second most likely token.
        edge: The logit of the last candidate minus that of the best token that is not a candidate.
    """

    token: int
    confidence: float
    lead: float
    edge: float = np.inf


class BlockDrafts:
    """Computes the draft of a block drafter after any prefix of a text."""

    def __init__(self, target: Path, drafter: Path, tokens: list[int]) -> None:
        self.tokens = tokens
        self.own, owner = Weights(drafter), Weights(target)
        inputs = layer_inputs(owner, tokens)
        features = np.concatenate([inputs[i] for i in self.own.fact("target_layers")], axis=-1)
        self.states = self.own.normed(self.own.times(features, "fc"), "enc.output_norm")
        shared = owner.tensors | self.own.tensors
        self.embeddings = shared["token_embd.weight"]
        self.output = shared.get("output.weight", self.embeddings)
        self.known = shared.get("d2t", np.arange(len(self.output)))
        self.is_dspark = "markov_w1.weight" in self.own.tensors
        self.is_dflash2 = "selector_hidden.weight" in self.own.tensors

    def after(self, n: int, length: int, mask: int) -> list[Drafted]:
        """Return the draft of `length` tokens after the first n. The target has decoded the first n
        - 1, so the drafter has their states."""
        anchored = self.is_dspark and self.own.fact("sample_from_anchor", True)
        n_rows = length + (not anchored)
        last = self.tokens[n - 1]
        x = self.block(n - 1, self.embeddings[[last, *[mask] * (n_rows - 1)]])
        x = self.own.normed(x, "output_norm")
        logits = np.full((n_rows, len(self.embeddings)), -np.inf)
        logits[:, self.known] = x @ self.output.T
        first = 0 if anchored else 1
        if self.is_dspark:
            return self.chained(x[first:], logits[first:], last)
        if self.is_dflash2:
            return self.walked(x[first:], logits[first:], last)
        return [said(softmax(row)) for row in logits[first:]]

    def block(self, n_states: int, x: Floats) -> Floats:
        """Return the output of the last layer for a block after so many states."""
        own = self.own
        states = self.states[:n_states]
        for i in range(own.fact("block_count")):
            n = f"blk.{i}"
            h = own.normed(x, f"{n}.attn_norm")
            dynamic, h = self.convolved(h, f"{n}.attn")
            q = own.heads(h, n, "q", n_states)
            k, v = (
                np.concatenate([own.heads(states, n, name), own.heads(h, n, name, n_states)])
                for name in "kv"
            )
            causal = bool(own.fact("attention.causal", False))
            h = own.times(attended(q, k, v, causal=causal), f"{n}.attn_output")
            x = x + self.convolved_again(h, dynamic, f"{n}.attn")
            h = own.normed(x, f"{n}.ffn_norm")
            dynamic, h = self.convolved(h, f"{n}.ffn")
            x = x + self.convolved_again(own.feed_forward(n, h), dynamic, f"{n}.ffn")
        return x

    def convolved(self, h: Floats, n: str) -> tuple[Floats | None, Floats]:
        """Return the coefficients of a layer's two convolutions, and the result of the first for h
        (DFlash2 only)."""
        if not self.is_dflash2:
            return None, h
        dynamic = self.own.times(h, f"{n}_conv_proj")
        return dynamic, self.convolution(h, dynamic, n, 0)

    def convolved_again(self, h: Floats, dynamic: Floats | None, n: str) -> Floats:
        return h if dynamic is None else self.convolution(h, dynamic, n, 1)

    def convolution(self, h: Floats, dynamic: Floats, n: str, side: int) -> Floats:
        taps, group = self.own.fact("conv_kernel_size"), self.own.fact("conv_group_size")
        coefficients = dynamic.reshape(len(h), 2, taps, -1)[:, side]
        weights = np.repeat(coefficients, group, axis=-1)
        weights = weights + self.own.tensors[f"{n}_conv_base"][side]
        result = np.zeros_like(h)
        for tap in range(min(taps, len(h))):
            result[tap:] += weights[tap:, tap] * h[: len(h) - tap]
        return result

    def chained(self, x: Floats, logits: Floats, last: int) -> list[Drafted]:
        """With the bias of the previous token, and the confidence head."""
        own = self.own.tensors
        drafted = []
        for row, state in zip(logits, x, strict=True):
            before = own["markov_w1.weight"][last]
            row = row.copy()
            row[self.known] += own["markov_w2.weight"] @ before
            one = said(softmax(row))
            if "conf_proj.weight" in own:
                sure = own["conf_proj.weight"].reshape(-1) @ np.concatenate([state, before])
                one.confidence = float(1 / (1 + np.exp(-sure - own["conf_proj.bias"][0])))
            drafted.append(one)
            last = one.token
        return drafted

    def walked(self, x: Floats, logits: Floats, last: int) -> list[Drafted]:
        """Follow the lattice of candidates."""
        own, top_k = self.own.tensors, self.own.fact("selector_top_k")
        drafted = []
        for row, state in zip(logits, x, strict=True):
            candidates = np.argsort(-row)[: top_k + 1]
            edge = float(row[candidates[-2]] - row[candidates[-1]])
            candidates = candidates[:-1]
            gate = own["selector_hidden.weight"] @ state
            pairs = own["selector_successor.weight"][candidates] @ (
                gate * own["selector_predecessor.weight"][last]
            )
            one = said(softmax(row[candidates] + pairs))
            one.token, one.edge = int(candidates[one.token]), edge
            drafted.append(one)
            last = one.token
        return drafted


def said(probabilities: Floats) -> Drafted:
    second, first = np.argsort(probabilities)[-2:]
    best = float(probabilities[first])
    return Drafted(int(first), best, best - float(probabilities[second]))
