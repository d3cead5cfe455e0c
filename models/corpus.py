"""The corpus: CPython's standard library, and a byte-level BPE tokenizer for it. Also reads the
answers of other targets."""

from __future__ import annotations

import json
import random
import sysconfig
from pathlib import Path
from typing import NamedTuple

import numpy as np
from gguf import GGUFReader
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

Tokens = NDArray[np.int64]

END = "<|end|>"
"""Token 0, before every file and after the last; the models' BOS and EOS."""

VOCABULARY = 4096
"""Tokens in the vocabulary: `END`, the 256 bytes, and 3839 merges."""

SPLIT_SEED = 7
"""Seed of the shuffle that chooses the held-out files."""

# Tests are a third of the library and repeat themselves; codec tables and documentation topics are
# data; the others are applications, not library code.
_LEFT_OUT = {
    "encodings",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "site-packages",
    "test",
    "turtledemo",
}
_MIN_CHARACTERS = 200


class Split(NamedTuple):
    """Texts of whole files, in shuffled order: for training, and held out."""

    train: list[str]
    hold_out: list[str]


def read_files(root: Path | None = None) -> Split:
    """Read the standard library in `root` (default: that of the running Python).

    One file in 25 is held out as a whole, so that the neighbours of held-out functions are not in
    the training data.
    """
    root = root or Path(sysconfig.get_paths()["stdlib"])
    texts = []
    for path in sorted(root.rglob("*.py"), key=str):
        folders = path.relative_to(root).parts[:-1]
        if (folders and folders[0] in _LEFT_OUT) or {"test", "tests"} & set(folders):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # the library keeps a few files in other encodings
            continue
        if len(text) > _MIN_CHARACTERS:
            texts.append(text)
    random.Random(SPLIT_SEED).shuffle(texts)
    held = max(1, len(texts) // 25)
    return Split(train=texts[held:], hold_out=texts[:held])


def train_tokenizer(texts: list[str]) -> Tokenizer:
    """Byte-level BPE with GPT-2's pre-tokenizer (`gpt-2` in llama.cpp)."""
    tokenizer = _byte_level(BPE())
    trainer = BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def read_tokenizer(gguf: GGUFReader) -> Tokenizer:
    """The tokenizer in the metadata of a GGUF file of these models."""
    tokens = gguf.fields["tokenizer.ggml.tokens"].contents()
    merges = gguf.fields["tokenizer.ggml.merges"].contents()
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = _byte_level(BPE(vocabulary, [tuple(merge.split(" ")) for merge in merges]))
    tokenizer.add_special_tokens([END])
    return tokenizer


def _byte_level(model: BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[str]) -> Tokens:
    """Concatenate the texts' tokens, with `END` (0) before each text and after the last."""
    end = tokenizer.token_to_id(END)
    ids = [end]
    for encoding in tokenizer.encode_batch(texts):
        ids += encoding.ids
        ids.append(end)
    return np.array(ids, dtype=np.int64)


def read_answers(path: Path) -> list[Tokens]:
    """Read prompts and answers of a target from a file of answers.py."""
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [np.array(line["prompt"] + line["answer"], dtype=np.int64) for line in lines]


def batch(tokens: Tokens, size: int, length: int, seed: int, step: int) -> Tokens:
    """Draw `size` windows of `length + 1` tokens: inputs `[:, :-1]`, targets `[:, 1:]`.

    The draw depends only on (seed, step), so a resumed run needs no generator state.
    """
    generator = np.random.default_rng((seed, step))
    starts = generator.integers(0, len(tokens) - length, size)
    windows: Tokens = tokens[starts[:, None] + np.arange(length + 1)]
    return windows
