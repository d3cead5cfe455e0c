"""Random requests that start, run and end in any order in one session: each gets the tokens of
plain decoding alone."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import NamedTuple

import pytest
from draws import Draws, Guessing, found
from specllama import Generation, SpecSession, Stream

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="exactness is claimed for x86-64 only"
)

N_DRAWS = 24
N_STEPS = 40


class Running(NamedTuple):
    """A running request."""

    stream: Stream
    expected: Generation
    prompt: list[int]


class Crowd:
    """A session with several slots, compared with plain decoding.

    Args:
        folder: Folder for models.
        seed: Seed of all random choices.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.draws = Draws(folder, seed)
        self.rng = self.draws.rng
        self.running: list[Running] = []
        self.texts: list[list[int]] = []
        self.n_accepted = 0

    def run(self) -> int:
        """Start and end requests; return the number of accepted draft tokens."""
        model, drafts, words = self.draws.model()
        shared, own = self.draws.session(drafts)
        shared["n_ctx"] = self.rng.choice([160, 256, 512])
        self.drafter = own["draft"] if isinstance(own["draft"], Guessing) else None
        with SpecSession(model, None, **shared | {"n_seq": 1}) as self.plain:
            if self.drafter:
                self.drafter.n_vocab = self.plain.n_vocab
            n_seq = self.rng.randint(2, 5)
            several = {"n_seq": n_seq, "n_batch": max(shared["n_batch"], n_seq)}
            with SpecSession(model, **own, **shared | several) as self.session:
                for _ in range(N_STEPS):
                    self.step(words)
        return self.n_accepted

    def step(self, words: bool) -> None:
        if len(self.running) < self.session.n_seq and self.rng.random() < 0.4:
            self.begin(words)
        for _ in range(self.rng.randint(1, 6) if self.running else 0):
            next(self.rng.choice(self.running).stream, None)
        if self.running and self.rng.random() < 0.08:
            left = self.running.pop(self.rng.randrange(len(self.running)))
            left.stream.close()
            done = left.stream.result().tokens  # may include the beginning of a stop string
            assert all(map(int.__eq__, done, left.expected.tokens))
            self.texts.append([*left.prompt, *done])
        for one in [one for one in self.running if one.stream.finish_reason]:
            self.running.remove(one)
            self.same(one)

    def prompt(self, words: bool) -> list[int]:
        """Return a new prompt, or one with the beginning of an earlier text: nearly all of it, or a
        random part."""
        if not self.texts or self.rng.random() < 0.3:
            drawn = self.draws.prompt(words, self.plain.n_vocab)
            return self.plain.tokenize(drawn) if isinstance(drawn, str) else drawn
        text = self.rng.choice(self.texts)
        near_its_end = self.rng.random() < 0.6
        end = len(text) - self.rng.randrange(5) if near_its_end else self.rng.randint(1, len(text))
        more = [self.rng.randrange(3, self.plain.n_vocab) for _ in range(self.rng.randrange(3))]
        return [*text[: max(end, 1)], *more]

    def begin(self, words: bool) -> None:
        prompt = self.prompt(words)
        if (drawn := self.draws.asked(self.plain, self.session, prompt, words)) is None:
            return
        options, expected = drawn
        if self.drafter:
            self.drafter.coming[tuple(prompt)] = expected.tokens
        self.running.append(Running(self.session.stream(prompt, **options), expected, prompt))

    def same(self, one: Running) -> None:
        result = one.stream.result()
        assert found(result) == found(one.expected)
        assert result.stats.exact
        self.n_accepted += result.stats.accepted
        self.texts.append([*one.prompt, *result.tokens])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def test_random_requests_get_the_tokens_of_plain_decoding(folder: Path) -> None:
    assert sum(Crowd(folder, seed).run() for seed in range(N_DRAWS)) > 100


@pytest.mark.slow
def test_many_random_requests_get_the_tokens_of_plain_decoding(folder: Path) -> None:
    for seed in range(N_DRAWS, N_DRAWS + 1000):
        Crowd(folder, seed).run()
