"""The common part of heads and block drafters. They draft from states of a target of network.py,
and use its embeddings and output. A drafter with fewer tokens has a copy of their output rows."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

import torch
from gguf import GGMLQuantizationType, GGUFReader, dequantize
from network import Config, Network, fast_matrices, rotary_table
from torch import Tensor, nn
from torch.nn import functional


def layers_read(config: Config) -> tuple[int, int, int]:
    """Layers of the target whose inputs form a state: a low, a middle and the last one."""
    return config.layers // 6, config.layers // 2, config.layers - 1


class StateReader(nn.Module):
    """A drafter that reads states of the target and is trained on windows of text."""

    name: ClassVar[str]
    """Name of the files that training writes."""
    title: ClassVar[str]
    architecture: ClassVar[str]
    """Architecture of its GGUF file."""
    layers: ClassVar[int]
    longest: ClassVar[int | None] = None
    """Most tokens of a draft; None: any number."""
    d2t: Tensor | None
    cos: Tensor
    sin: Tensor

    def __init__(self, config: Config, known: Tensor | None = None) -> None:
        """config: that of the target; the drafter has the same heads and widths. known: token ids
        that the drafter can draft; None: all."""
        super().__init__()
        self.config = config
        self.fc = nn.Linear(3 * config.width, config.width, bias=False)
        self.register_buffer("d2t", known)
        self.n_known = config.vocabulary if known is None else len(known)
        if known is not None:
            self.output = nn.Linear(config.width, self.n_known, bias=False).requires_grad_(False)
        cos, sin = rotary_table(config)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    @abstractmethod
    def begin_with(self, target: Network) -> None:
        """Start from the target's weights."""

    @abstractmethod
    def loss(self, target: Network, window: Tensor) -> Tensor:
        """The training loss on windows (batch, tokens)."""

    @abstractmethod
    def judge(self, target: Network, window: Tensor) -> Tensor:
        """The loss that is reported for held-out windows."""

    @abstractmethod
    def by_place(
        self, target: Network, tokens: Tensor, features: Tensor, places: int
    ) -> list[Tensor]:
        """The drafts after every token of a text, if the earlier tokens of each draft are right.

        Args:
            target: The model whose embeddings and output are used.
            tokens: (1, n) token ids.
            features: (1, n, 3 width), see `read`.
            places: Tokens of a draft; at most `longest`.

        Returns:
            For each position m = 0, 1, ... in a draft: logits (rows, tokens that it can draft). Row
            j corresponds to the target's row 1 + m + j.
        """

    def output_weight(self, target: Network) -> Tensor:
        """The target's output matrix, for the tokens that the drafter can draft."""
        weight: Tensor = target.output_weight if self.d2t is None else self.output.weight
        return weight

    def take_output(self, target: Network) -> None:
        """Copy the output rows of the tokens that the drafter can draft, if these are not all."""
        if self.d2t is not None:
            with torch.no_grad():
                self.output.weight.copy_(target.output_weight[self.d2t])

    def said_of_all(self, logits: Tensor) -> Tensor:
        """Extend logits of the tokens that it can draft to all tokens: the others are -inf."""
        if self.d2t is None:
            return logits
        every = logits.new_full((*logits.shape[:-1], self.config.vocabulary), float("-inf"))
        every[..., self.d2t] = logits
        return every

    @torch.no_grad()
    def read(self, target: Network, window: Tensor) -> tuple[Tensor, Tensor]:
        """Return, for windows (batch, tokens), the target's logits for the tokens that the drafter
        can draft, and the features from which it drafts, (batch, tokens, 3 width)."""
        with fast_matrices():
            last, inputs = target.with_inputs(window, layers_read(self.config))
            logits = functional.linear(last, self.output_weight(target))
        return logits.float(), torch.cat(inputs, dim=-1)

    @classmethod
    def load(cls, path: Path, config: Config) -> StateReader:
        """Read a drafter for a target of these sizes from GGUF, dequantised to float32."""
        weights = {
            tensor.name: torch.tensor(
                tensor.data
                if tensor.tensor_type == GGMLQuantizationType.I64
                else dequantize(tensor.data, tensor.tensor_type)
            )
            for tensor in GGUFReader(path).tensors
        }
        reader = cls(config, weights.get("d2t"))
        reader.load_state_dict(weights)
        return reader.eval()
