"""Sessions and requests with random options; the same seed gives the same ones."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from heads import write_eagle3, write_glm, write_perfect_pair, write_qwen
from numpy.typing import NDArray
from prompts import PROMPTS
from random_model import (
    EOS,
    write_dense,
    write_experts,
    write_hybrid_with_snapshots,
    write_sliding_window,
)
from session_options import EXACT_HERE
from specllama import Drafter, Generation, SpecllamaError, SpecSession
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL

GRAMMARS: list[dict[str, Any]] = [
    {"grammar": r'root ::= ("[" [0-9]{1,3} ("," " "? [0-9]{1,3}){0,3} "]\n"){1,8}'},
    {"grammar": r'root ::= "def " [a-z]+ "(self, " [a-z]+ "):\n    return " [^\x00]*'},
    {"json_schema": {}},
    {
        "json_schema": {
            "type": "array",
            "minItems": 2,
            "maxItems": 4,
            "items": {
                "type": "object",
                "properties": {
                    "customer": {"type": "string", "maxLength": 6},
                    "state": {"enum": ["approved", "approximate", "rejected"]},
                },
                "required": ["customer", "state"],
                "additionalProperties": False,
            },
        }
    },
]
# With words of the random models.
WORD_GRAMMARS: list[dict[str, Any]] = [
    {"grammar": r'root ::= (" w" [1-4] ("0" | "1" | "2")?)+'},
    {"grammar": r'root ::= (" w11 w12 w13" " w" [2-7] (" w21 w22 w23")?){1,9}'},
]
LAZY = {"grammar": r'root ::= ("(" | "=") [^()]{0,9} ("," | ")") [ 0-9,()]*'}
WORD_LAZY = {"grammar": r'root ::= " w1" [0-9] (" w3" [0-9]){1,5} [^\x00]*'}


class Guessing(Drafter):
    """Drafts chains that leave the right text at a random position: one or several, sometimes none,
    and sometimes it fails.

    Attributes:
        n_vocab: Size of the vocabulary.
        coming: The right text after each prompt.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.n_vocab = 3
        self.coming: dict[tuple[int, ...], list[int]] = {}
        self.known: dict[int, tuple[int, list[int]]] = {}

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:
        self.known[sequence] = (len(prompt), self.coming.get(tuple(prompt.tolist()), []))

    def end(self, sequence: int) -> None:
        del self.known[sequence]

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> Iterable[Any]:
        kind = self.rng.random()
        if kind < 0.1:
            return []
        if kind < 0.13:
            raise ValueError("no idea")
        n_prompt, coming = self.known[sequence]
        right = coming[len(tokens) - n_prompt :][:max_tokens]
        right += self.rng.choices(range(self.n_vocab), k=max_tokens - len(right))
        chains = []
        for _ in range(self.rng.randrange(1, 5)):
            leaves = self.rng.randrange(max_tokens + 1)
            end = self.rng.randrange(leaves, max_tokens + 1)
            wrong = self.rng.choices(range(self.n_vocab), k=end - leaves)
            chains.append([*right[:leaves], *wrong])
        return chains[0] if kind < 0.3 else chains


class Draws:
    """Random choices.

    Args:
        folder: Folder for models.
        seed: Seed of all random choices.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rng = random.Random(seed)

    def maybe(self, chance: float, options: dict[str, Any]) -> dict[str, Any]:
        return options if self.rng.random() < chance else {}

    def model(self) -> tuple[Path, list[Any], bool]:
        """Return a model, its possible drafters, and whether it generates words only."""
        kind = self.rng.choice(sorted(MODELS))
        model, drafts = MODELS[kind](self.folder)
        return model, drafts, kind != "bundled"

    def session(self, drafts: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return options of a session that plain decoding shares, and those of its drafters."""
        rng = self.rng
        shared = {
            "n_ctx": rng.choice([160, 256, 512, None]),
            "n_seq": rng.choice([1, 1, 1, 2, 3]),
            "n_batch": rng.choice([3, 5, 8, 16, 33, 70, 512, 512, 512]),
            "n_threads": 1,
            "exact": EXACT_HERE,
        }
        spec_length = rng.choice(["auto", "auto", 1, 2, 3, 4, 6, 8, 16, 64])
        trees = ["off", "auto", 2, 3, 3, 4, 8]
        if spec_length != "auto":
            trees = [n for n in trees if isinstance(n, str) or n * spec_length <= 64]
        draft = rng.choice(["ngram", "own", *drafts])
        own: dict[str, Any] = {
            "draft": Guessing(rng.randrange(99)) if draft == "own" else draft,
            "spec_length": spec_length,
            "spec_tree": rng.choice(trees),
            "cascade": rng.random() < 0.8,
            "ngram_order": rng.randrange(2, 9),
            **self.maybe(0.2, {"ngram_draw": True}),
            **self.maybe(0.2, {"ngram_window": rng.randrange(1, 60)}),
        }
        if draft not in ("ngram", "own"):
            own |= {
                **self.maybe(0.2, {"draft_p_min": rng.choice([0.1, 0.5, 0.9])}),
                **self.maybe(0.2, {"draft_temperature": rng.choice([0.0, 0.5, 2.0])}),
                **self.maybe(0.1, {"draft_top_k": rng.choice([1, 2, 10])}),
            }
        return shared, own

    def prompt(self, words: bool, n_vocab: int) -> str | list[int]:
        rng = self.rng
        if not words:
            return rng.choice([text for text in PROMPTS.values() if len(text) < 400])
        start = rng.randrange(3, n_vocab // 2)
        end = rng.randrange(start + 1, n_vocab)
        return [1, *range(start, end)[:40]] * rng.choice([1, 1, 2])

    def request(self, words: bool, n_vocab: int) -> dict[str, Any]:
        """Return options of a generation, except those that depend on its text."""
        rng = self.rng
        temperature = rng.choice([0.0, 0.0, 0.5, 1.0, 1.5])
        no_end = {EOS: -100.0} if words else {}
        biases = {rng.randrange(n_vocab): rng.choice([-5.0, 3.0, 8.0]) for _ in range(3)}
        lazy = WORD_LAZY | {"grammar_triggers": rng.choice([" w1", [" w5", " w1"]])}
        if not words:
            lazy = LAZY | {"grammar_triggers": rng.choice(["(", ["=", "("]])}
        held = rng.choice(WORD_GRAMMARS if words else GRAMMARS)
        return {
            "max_tokens": rng.choice([1, 2, 7, 30, 60, 100]),
            "seed": rng.randrange(2**64),
            "temperature": temperature,
            "logit_bias": no_end | (biases if rng.random() < 0.3 else {}),
            **self.maybe(0.2, {"top_k": rng.choice([1, 2, 10, 50])}),
            **self.maybe(0.2, {"top_p": rng.choice([0.1, 0.8, 0.99])}),
            **self.maybe(0.2, {"min_p": rng.choice([0.02, 0.3])}),
            **self.maybe(0.2, {"repeat_penalty": rng.choice([0.9, 1.1, 1.5])}),
            **self.maybe(0.1, {"frequency_penalty": rng.choice([-0.5, 0.5])}),
            **self.maybe(0.1, {"presence_penalty": 0.7}),
            **self.maybe(0.2, {"repeat_last_n": rng.choice([-1, 0, 5])}),
            **self.maybe(0.1, {"top_n_sigma": rng.choice([0.5, 1.0])}),
            **self.maybe(0.1, {"typical_p": rng.choice([0.3, 0.9])}),
            **self.maybe(0.2, {"xtc_probability": rng.choice([0.3, 1.0]), "xtc_threshold": 0.05}),
            **self.maybe(0.2, {"dry_multiplier": rng.choice([0.5, 5.0])}),
            **self.maybe(0.1, {"dry_sequence_breakers": rng.choice([None, [" w1", "e"]])}),
            **self.maybe(0.1, {"ignore_eos": True}),
            **self.maybe(0.3, {"logprobs": rng.choice([0, 3])}),
            **self.maybe(0.1, {"processed_logprobs": True}),
            **self.maybe(0.2, {"trace": True}),
            **self.maybe(0.4, rng.choice([held, held, lazy])),
        }

    def asked(
        self, plain: SpecSession, other: SpecSession, prompt: list[int], words: bool
    ) -> tuple[dict[str, Any], Generation] | None:
        """Draw a generation; return its options and the result of `plain`. None if the context has
        no space after the prompt, or if it fails, in which case the other session must fail,
        too."""
        rng, room = self.rng, plain.n_ctx - len(prompt)
        if room < 1:
            return None
        options = self.request(words, plain.n_vocab)
        options["max_tokens"] = min(options["max_tokens"], room)
        try:
            expected = plain.generate(prompt, **options)
        except SpecllamaError as error:
            with pytest.raises(type(error), match=re.escape(str(error))):
                other.generate(prompt, **options)
            return None
        if len(expected.text) > 3 and rng.random() < 0.3:
            at = rng.randrange(len(expected.text) - 1)
            options["stop"] = [expected.text[at : at + rng.randrange(1, 5)], "zz"]
            expected = plain.generate(prompt, **options)
        if rng.random() < 0.3:
            options["reference"] = [*expected.tokens[rng.randrange(3) :], 5, 6, 7]
        return options, expected


def found(generation: Generation) -> Any:
    """Return what must be equal."""
    logprobs = [(one.token, one.logprob, one.top) for one in generation.logprobs]
    return generation.tokens, generation.text, generation.finish_reason, logprobs


def _alone(write: Callable[[Path], Path]) -> Callable[[Path], tuple[Path, list[Any]]]:
    def make(folder: Path) -> tuple[Path, list[Any]]:
        model = folder / f"{write.__name__}.gguf"
        if not model.exists():
            write(model)
        return model, []

    return make


def _eagle3(write: Callable[[Path], Path]) -> Callable[[Path], tuple[Path, list[Any]]]:
    def make(folder: Path) -> tuple[Path, list[Any]]:
        head, other = folder / "eagle3.gguf", folder / "other.gguf"
        if not head.exists():
            write_eagle3(head)
            write_dense(other, seed=9)
        return _alone(write)(folder)[0], [head, other]

    return make


def _perfect_pair(folder: Path) -> tuple[Path, list[Any]]:
    target, head = folder / "knowing" / "target.gguf", folder / "knowing" / "head.gguf"
    if not target.exists():
        write_perfect_pair(folder / "knowing", shares=False)
    return target, [head]


def _mtp(write: Callable[[Path], Path]) -> Callable[[Path], tuple[Path, list[Any]]]:
    def make(folder: Path) -> tuple[Path, list[Any]]:
        return _alone(write)(folder)[0], ["mtp", "auto"]

    return make


MODELS: dict[str, Callable[[Path], tuple[Path, list[Any]]]] = {
    "bundled": lambda _: (BUNDLED_MODEL, [BUNDLED_DRAFT, BUNDLED_DRAFT]),
    "dense": _eagle3(write_dense),
    "experts": _eagle3(write_experts),
    "sliding window": _alone(write_sliding_window),
    "snapshots": _eagle3(write_hybrid_with_snapshots),
    "knowing": _perfect_pair,
    "mtp of experts": _mtp(write_glm),
    "mtp of a delta net": _mtp(write_qwen),
}
"""Models that decode exactly, with their possible drafters."""
