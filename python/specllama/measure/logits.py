"""Logits at every position of a text, from llama-cpp-python. Measurements with them are independent
of the core, which drafts and verifies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specllama import _core
from specllama._closing import Closing
from specllama.errors import DecodeError, ModelError
from specllama.requests.options import sampling_options

Logits = NDArray[np.float32]
Probabilities = NDArray[np.float64]


class LogitsModel(Closing):
    """A GGUF model that gives access to its logits.

    Args:
        path: The GGUF file.
        n_ctx: Maximum number of tokens of a text.
        n_threads: Threads. None: llama-cpp-python's default.
        n_gpu_layers: Layers on the GPU; -1: all.

    Raises:
        ModelError: The file is missing, damaged, or is not a model that generates text.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        n_ctx: int,
        n_threads: int | None = None,
        n_gpu_layers: int = -1,
    ) -> None:
        import llama_cpp

        self.file = _core.read_model_file(os.fspath(path))
        self._tokenizer = _core.Tokenizer(os.fspath(path))
        try:
            self._llama: Any = llama_cpp.Llama(
                os.fspath(path),
                n_ctx=n_ctx,
                n_threads=n_threads,
                n_threads_batch=n_threads,
                n_gpu_layers=n_gpu_layers,
                logits_all=True,
                verbose=False,
            )
        except (ValueError, RuntimeError, MemoryError) as error:
            raise ModelError(f"llama.cpp cannot load {os.fspath(path)}: {error}.") from None
        vocabulary = llama_cpp.llama_model_get_vocab(self._llama.model)
        self._ends = {
            token
            for token in range(self.n_vocab)
            if llama_cpp.llama_vocab_is_eog(vocabulary, token)
        }

    @property
    def n_vocab(self) -> int:
        """Length of a row of logits."""
        return int(self._llama.n_vocab())

    def tokenize(self, text: str, *, add_special: bool) -> list[int]:
        """Return the token ids of a text, after the model's BOS if `add_special`.

        (The core tokenizes, because it checks input that llama.cpp's tokenizers do not check.)
        """
        return self._tokenizer.tokenize(text, add_special=add_special, parse_special=False)

    def rows(self, tokens: Sequence[int], first: int) -> Logits:
        """Return the logits from which tokens[first], tokens[first + 1], ... would be chosen.

        Args:
            tokens: A text, at most `n_ctx` tokens.
            first: 1 or more.

        Returns:
            Shape [n_tokens - first, n_vocab], float32: a view into llama-cpp-python's memory, valid
            until the next call.
        """
        self._llama.reset()
        self._evaluate(tokens[:-1])
        return np.asarray(self._llama.scores[first - 1 : len(tokens) - 1])

    def generate(
        self, prompt: Sequence[int], n_tokens: int, *, temperature: float, seed: int
    ) -> list[int]:
        """Return a prompt and the model's continuation, with tokens chosen as in a session.

        It ends with an end-of-generation token, or after `n_tokens` generated tokens.
        """
        sampler = _core.Sampler(sampling_options(temperature=temperature, seed=seed), self.n_vocab)
        tokens = list(prompt)
        self._llama.reset()
        self._evaluate(tokens)
        for i in range(n_tokens):
            if i > 0:
                self._evaluate(tokens[-1:])
            tokens.append(sampler.choose(self._llama.scores[len(tokens) - 1], tokens))
            if tokens[-1] < 0:
                raise DecodeError("The model's logits have a NaN.")
            if tokens[-1] in self._ends:
                break
        return tokens

    def close(self) -> None:
        """Free the model."""
        self._llama.close()

    def _evaluate(self, tokens: Sequence[int]) -> None:
        try:
            self._llama.eval(list(tokens))
        except RuntimeError as error:
            raise DecodeError(f"llama.cpp could not decode: {error}.") from None


def probabilities(logits: Logits, temperature: float) -> Probabilities:
    """Return softmax(logits / temperature) of each row; at 0, the likeliest token has 1.

    Args:
        logits: Shape [n, n_vocab].
        temperature: 0 or more.
    """
    if temperature == 0:
        return one_hot(np.argmax(logits, axis=-1), logits.shape[-1])
    exact = logits.astype(np.float64)
    with np.errstate(over="ignore"):  # a very low temperature overflows to -inf
        weights = np.exp((exact - exact.max(axis=-1, keepdims=True)) / temperature)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def one_hot(tokens: NDArray[np.int64], n_vocab: int) -> Probabilities:
    """Return rows with a single 1, in column tokens[i] of row i: shape [n, n_vocab]."""
    rows = np.zeros((len(tokens), n_vocab))
    rows[np.arange(len(tokens)), tokens] = 1
    return rows
