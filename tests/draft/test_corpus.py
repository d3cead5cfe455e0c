"""Corpus files: predictions, damaged files, and the same tokens with a corpus."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from prompts import ENDLESS, PROMPTS, most_tokens
from session_options import Open
from specllama import ArgumentError
from specllama.__main__ import main
from specllama._core import Corpus, CorpusBuilder, Tokenizer
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL

HEADER = struct.Struct("<8sIIQQQQQQQ")
N_VOCAB = 4096


def write(path: Path, texts: list[list[int]], n_vocab: int = N_VOCAB, vocabulary: int = 1) -> Path:
    builder = CorpusBuilder(1 << 20)
    for text in texts:
        builder.append(np.array(text, np.int32))
        builder.end_text()
    builder.write(str(path), n_vocab, vocabulary)
    return path


def predict(opened: Corpus, text: list[int], n: int = 64) -> list[tuple[int, int]]:
    return [(one.token, one.length) for one in opened.predict(np.array(text, np.int32), n)]


class Reference:
    """The definition: compares with every position of every text."""

    def __init__(self, texts: list[list[int]]) -> None:
        joined = [token for text in texts for token in (*text, -1)]
        self.tokens: NDArray[np.int32] = np.array(joined, np.int32)

    def longest(self, text: list[int]) -> tuple[int, list[list[int]]]:
        """Return the length of the longest match, and what follows each position that has it."""
        length = np.zeros(len(self.tokens), int)  # of the match that ends before a position
        agrees = np.ones(len(self.tokens), bool)
        for i in range(1, min(64, len(text)) + 1):
            agrees &= np.concatenate([np.zeros(i, bool), self.tokens[:-i] == text[-i]])
            length += agrees
        length[self.tokens == -1] = 0  # nothing follows
        best = int(length.max(initial=0))
        if best < 4:
            return 0, []
        return best, [self.text_from(place) for place in np.flatnonzero(length == best)]

    def text_from(self, place: int) -> list[int]:
        end = place + int(np.argmax(self.tokens[place:] == -1))
        return [int(token) for token in self.tokens[place : min(end, place + 64)]]

    def check(self, opened: Corpus, text: list[int]) -> bool:
        """Compare a search with the definition; return whether there was a match."""
        length, rest = self.longest(text)
        found = predict(opened, text)
        assert [one for _, one in found] == list(range(length, length + len(found)))
        assert bool(found) == bool(length)
        # With more than 32 positions, a sample decides, so any of them may be followed.
        sampled = len(rest) > 32
        for i, (token, _) in enumerate(found):
            following = [one[i] for one in rest if len(one) > i]
            if not sampled:
                assert following.count(token) == max(map(following.count, following))
            rest = [one for one in rest if len(one) > i and one[i] == token]
            assert rest
        # It continues as far as the text does.
        assert not found or any(len(one) == len(found) for one in rest)
        return bool(found)


def tokens_of(*names: str) -> list[list[int]]:
    tokenizer = Tokenizer(str(BUNDLED_MODEL))
    library = Path(sysconfig.get_paths()["stdlib"])
    return [tokenizer.tokenize((library / name).read_text(), add_special=False) for name in names]


@pytest.mark.parametrize("n_distinct", [2, 4, 40])
@pytest.mark.parametrize("seed", range(3))
def test_corpus_predictions_of_random_tokens_match_the_reference(
    tmp_path: Path, n_distinct: int, seed: int
) -> None:
    rng = random.Random(f"{n_distinct} {seed}")

    def some(n: int) -> list[int]:
        return [int(n_distinct * rng.random() ** 2) for _ in range(n)]

    texts = [some(rng.choice([0, 1, 4, 5, 30, 200])) for _ in range(12)]
    texts += [texts[-1][:50] + some(5), [0] * 150]
    opened = Corpus(str(write(tmp_path / "c", texts)))
    assert opened.n_texts == sum(bool(text) for text in texts)
    assert opened.n_tokens == 1 + sum(len(text) + 1 for text in texts if text)
    reference = Reference(texts)
    n_found = 0
    for _ in range(150):
        text = some(rng.choice([0, 3, 4, 10]))
        if rng.random() < 0.5:
            text += rng.choice(texts)[: rng.randrange(100)]
        n_found += reference.check(opened, text)
    assert n_found > 10


def test_corpus_predictions_of_real_text_match_the_reference(tmp_path: Path) -> None:
    texts = tokens_of("textwrap.py", "shlex.py", "optparse.py", "bisect.py")
    opened = Corpus(str(write(tmp_path / "c", texts)))
    reference = Reference(texts)
    [text] = tokens_of("argparse.py")
    assert sum(reference.check(opened, text[:end]) for end in range(1000, 1400)) > 20
    # A text of the corpus is found and copied to its end.
    start = texts[1][100:110]
    assert [token for token, _ in predict(opened, start)] == texts[1][110:174]
    assert [token for token, _ in predict(opened, texts[1][-80:-10])] == texts[1][-10:]
    assert predict(opened, texts[1]) == []
    assert predict(opened, texts[1][:-1])[0] == (texts[1][-1], 64)


def test_corpus_size_is_bounded(tmp_path: Path) -> None:
    rng = random.Random(1)
    for n in (0, 1, 100, 20_000):
        opened = Corpus(str(write(tmp_path / "c", [[rng.randrange(900) for _ in range(n)]])))
        assert opened.size_bytes == (tmp_path / "c").stat().st_size <= 9 * n + 128
    builder = CorpusBuilder(100)
    builder.append(np.arange(60, dtype=np.int32))
    builder.end_text()
    builder.append(np.arange(60, 120, dtype=np.int32))
    assert builder.full
    builder.append(np.arange(5, dtype=np.int32))
    builder.write(str(tmp_path / "c"), N_VOCAB, 1)
    opened = Corpus(str(tmp_path / "c"))
    assert (opened.n_tokens, opened.n_texts) == (100, 2)
    assert [token for token, _ in predict(opened, [0, 60, 61, 62, 63])] == list(range(64, 97))


def test_files_that_are_not_corpora_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with pytest.raises(ArgumentError, match="cannot be read: No such file"):
        Corpus(str(path))
    with pytest.raises(ArgumentError, match="cannot be read: it is not a regular file"):
        Corpus(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArgumentError, match="cannot be read: it is not a regular file"):
        Corpus(str(tmp_path / "pipe"))
    for content in (b"", b"specc", b"x" * 1000, BUNDLED_DRAFT.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(ArgumentError, match="it is not a corpus of"):
            Corpus(str(path))
    content = bytearray(write(path, [[1, 2, 3, 4, 5]]).read_bytes())
    content[8] = 2
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match="of another version"):
        Corpus(str(path))


def test_damaged_corpora_are_refused(tmp_path: Path) -> None:
    content = write(tmp_path / "c", tokens_of("bisect.py")).read_bytes()
    rng = random.Random(2)
    path = tmp_path / "damaged"
    places = [*range(12, HEADER.size), *(rng.randrange(len(content)) for _ in range(300))]
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.randrange(8)
        path.write_bytes(flipped)
        with pytest.raises(ArgumentError, match="cannot be used for drafts"):
            Corpus(str(path))
    for n in (HEADER.size, len(content) - 1, *(rng.randrange(len(content)) for _ in range(100))):
        path.write_bytes(content[:n])
        with pytest.raises(ArgumentError, match="cannot be used for drafts"):
            Corpus(str(path))
    path.write_bytes(content + b"\0\0\0\0")
    with pytest.raises(ArgumentError, match="damaged"):
        Corpus(str(path))


def fnv1a(words: Any, hash: int = 14695981039346656037) -> int:
    for word in words:
        hash = (hash ^ int(word)) * 1099511628211 % 2**64
    return hash


def test_forged_corpora_give_only_valid_tokens(tmp_path: Path) -> None:
    """No read outside the file, and only valid tokens."""
    rng = np.random.default_rng(3)
    texts = [rng.integers(0, 6, 300).tolist()]
    content = write(tmp_path / "c", texts, n_vocab=6).read_bytes()
    words = np.frombuffer(content[HEADER.size :], "<u4")
    fields = list(HEADER.unpack(content[: HEADER.size]))
    queries = [rng.integers(0, 6, rng.integers(0, 80)).tolist() for _ in range(100)]
    n_found = 0
    for turn in range(60):
        wrong = words.copy()
        places = rng.integers(0, len(words), (1, 10, 300)[turn % 3])
        values = np.array([0, 5, 299, 2**31, 2**32 - 1, 2**32 - 2], "<u4")
        wrong[places] = rng.choice(values, len(places))
        fields[8] = fnv1a(wrong)
        fields[9] = fnv1a(HEADER.pack(*fields)[:-8])
        (tmp_path / "c").write_bytes(HEADER.pack(*fields) + wrong.tobytes())
        opened = Corpus(str(tmp_path / "c"))
        for query in queries:
            found = predict(opened, query)
            n_found += bool(found)
            assert all(0 <= token < 6 for token, _ in found)
    assert n_found > 100


def test_bad_corpus_arguments_are_refused(tmp_path: Path) -> None:
    for n in (0, -1, 2**28 + 1):
        with pytest.raises(ArgumentError, match="max_tokens must be from 1 to"):
            CorpusBuilder(n)
    builder = CorpusBuilder(100)
    with pytest.raises(ArgumentError, match="0 or more"):
        builder.append(np.array([1, -1], np.int32))
    with pytest.raises(FileNotFoundError):
        builder.write(str(tmp_path / "none" / "c"), N_VOCAB, 1)
    opened = Corpus(str(write(tmp_path / "c", [[1, 2, 3, 4, 5]])))
    for n in (-1, 65):
        with pytest.raises(ArgumentError, match="from 0 to 64"):
            predict(opened, [1, 2, 3, 4], n)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory, plain_tokens: dict[str, list[int]]) -> Path:
    """A corpus of all the model's answers to the prompts, and of misleading texts."""
    tokenizer = Tokenizer(str(BUNDLED_MODEL))
    texts = [*plain_tokens.values(), list(range(4096)), [7] * 500]
    path = tmp_path_factory.mktemp("corpus") / "said.corpus"
    return write(path, texts, tokenizer.n_vocab, tokenizer.fingerprint)


@pytest.mark.parametrize("spec_length", [4, 16, "auto"])
def test_a_corpus_gives_the_same_tokens_in_fewer_rounds(
    open_session: Open,
    open_planned: Open,
    plain_tokens: dict[str, list[int]],
    said: Path,
    spec_length: Any,
) -> None:
    open_one = open_planned if spec_length == "auto" else open_session
    without = open_one(spec_length=spec_length)
    session = open_one(spec_length=spec_length, corpus=said)
    n_rounds = n_rounds_without = n_accepted = 0
    for name in ("module", "english", "cjk", "near the limit"):
        prompt = PROMPTS[name]
        n = most_tokens(session, prompt, 200)
        generation = session.generate(prompt, max_tokens=n)
        assert generation.tokens == plain_tokens[name]
        assert generation.stats.drafter_errors == 0
        n_accepted += generation.stats.by_drafter["corpus"][1]
        n_rounds += generation.stats.rounds
        n_rounds_without += without.generate(prompt, max_tokens=n).stats.rounds
    # With "auto", measured times decide how much is drafted.
    assert n_accepted > (0 if spec_length == "auto" else 100)
    assert spec_length == "auto" or n_rounds < 0.8 * n_rounds_without


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.8, "seed": 1},
        {"temperature": 1.2, "seed": 5, "top_k": 20, "repeat_penalty": 1.2},
        {"grammar": "root ::= [a-z ()=.:,\n]*"},
    ],
)
def test_a_corpus_changes_no_sampled_or_constrained_token(
    open_session: Open, tmp_path: Path, options: dict[str, Any]
) -> None:
    """The corpus has the text with every tenth token wrong."""
    options = options | {"max_tokens": 120, **ENDLESS}
    expected = open_session(draft=None).generate(PROMPTS["module"], **options).tokens
    wrong = [token ^ 1 if i % 10 == 9 else token for i, token in enumerate(expected)]
    tokenizer = Tokenizer(str(BUNDLED_MODEL))
    path = write(tmp_path / "c", [wrong], tokenizer.n_vocab, tokenizer.fingerprint)
    generation = open_session(corpus=path).generate(PROMPTS["module"], **options)
    assert generation.tokens == expected
    drafted, accepted = generation.stats.by_drafter["corpus"]
    assert drafted > accepted > 0


def test_a_corpus_drafts_next_to_a_draft_model(
    open_planned: Open, plain_tokens: dict[str, list[int]], said: Path
) -> None:
    session = open_planned(draft=BUNDLED_DRAFT, corpus=said)
    for name in ("module", "english"):
        generation = session.generate(PROMPTS[name], max_tokens=200)
        assert generation.tokens == plain_tokens[name]
        assert generation.stats.by_drafter["corpus"][1] > 0


def test_rejection_sampling_accepts_corpus_drafts(open_session: Open, said: Path) -> None:
    session = open_session(corpus=said, ngram_draw=True)
    generation = session.generate(
        PROMPTS["module"], max_tokens=100, temperature=0.3, seed=2, acceptance="rejection"
    )
    assert generation.stats.by_drafter["corpus"][1] > 0
    assert generation.stats.drafter_errors == 0


@pytest.mark.here_and_served
def test_the_trace_names_the_corpus(open_session: Open, said: Path) -> None:
    generation = open_session(corpus=said).generate(PROMPTS["english"], max_tokens=60, trace=True)
    assert generation.trace is not None
    assert "corpus " in str(generation.trace)
    assert "tokens in the corpus" in generation.trace.to_html()


@pytest.mark.here_and_served
def test_a_corpus_of_another_vocabulary_is_refused(
    tmp_path: Path, open_session: Open, said: Path
) -> None:
    other = write(tmp_path / "c", [[1, 2, 3, 4, 5]])
    with pytest.raises(ArgumentError, match="built for another vocabulary"):
        open_session(corpus=other)
    for wrong, message in (
        (tmp_path / "none", "cannot be read"),
        ("a\0b", "NUL"),
        (5, "corpus must be a path"),
        (BUNDLED_MODEL, "not a corpus of"),
    ):
        with pytest.raises(ArgumentError, match=message):
            open_session(corpus=wrong)
    for corpus in (said, Path("/no/such.corpus")):  # without speculation, the corpus is not read
        assert open_session(draft=None, corpus=corpus).generate("x", max_tokens=2).tokens


def test_spec_cli_drafts_from_a_corpus(tmp_path: Path, said: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("spec-cli")),
        *("-m", str(BUNDLED_MODEL), "-p", PROMPTS["english"], "-n", "40"),
        *("-t", "1", "-ngl", "0", "--draft", "ngram"),
        *("--spec-length", "8", "-kv", "q8_0", "-fa", "on", "--stats"),
    ]
    plain = subprocess.run(command, capture_output=True, text=True, check=True)
    generation = subprocess.run(
        [*command, "--corpus", str(said)], capture_output=True, text=True, check=True
    )
    assert generation.stdout == plain.stdout
    assert "by corpus" in generation.stderr
    process = subprocess.run(
        [*command, "--corpus", str(tmp_path / "none")], capture_output=True, text=True, check=False
    )
    assert process.returncode == 2
    assert "cannot be read" in process.stderr
    assert process.stdout == ""


def test_trace_and_bench_accept_a_corpus(said: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "-p", "x", "-t", "1", "-ngl", "0", "--corpus", str(BUNDLED_MODEL)]) == 2
    assert "not a corpus of" in capsys.readouterr().err
    bench = ["-t", "1", "-ngl", "0", "--workload", "prose", "--texts", "1", "--repeat", "1"]
    assert main(["bench", *bench, "-n", "8", "--corpus", str(said)]) == 0
    assert f"corpus: {said}" in capsys.readouterr().out
    assert main(["bench", "--simulate", "none", "--corpus", str(said)]) == 2
    assert "leave out --corpus" in capsys.readouterr().err
