"""Random options: with every drafter, the tokens are those of plain decoding."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest
from draws import Draws, Guessing, found
from specllama import ArgumentError, Generation, SpecSession

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="exactness is claimed for x86-64 only"
)

N_DRAWS = 40
TOLD = ("stop", "grammar", "json_schema", "grammar_triggers", "max_tokens")
"""Options that a replay does not accept."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


class Comparison:
    """A drafting session, compared with plain decoding.

    Args:
        folder: Folder for models.
        seed: Seed of all random choices.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.draws = Draws(folder, seed)
        self.rng = self.draws.rng
        self.state = folder / "state"
        self.n_accepted = 0
        self.before: list[int] = []

    def run(self) -> int:
        """Compare some requests; return the number of accepted draft tokens."""
        model, drafts, words = self.draws.model()
        shared, own = self.draws.session(drafts)
        self.can_search = "snapshots" not in model.stem and "qwen" not in model.stem
        with SpecSession(model, None, **shared) as plain:
            self.plain = plain
            self.drafter = own["draft"] if isinstance(own["draft"], Guessing) else None
            if self.drafter:
                self.drafter.n_vocab = plain.n_vocab
            with SpecSession(model, **own, **shared) as session:
                self.session = session
                for _ in range(self.rng.randrange(2, 6)):
                    self.compare(words)
        return self.n_accepted

    def compare(self, words: bool) -> None:
        prompt = self.draws.prompt(words, self.plain.n_vocab)
        tokens = self.plain.tokenize(prompt) if isinstance(prompt, str) else prompt
        if self.before and self.rng.random() < 0.4:
            tokens = self.before
        if (drawn := self.draws.asked(self.plain, self.session, tokens, words)) is None:
            return
        options, expected = drawn
        if self.drafter:
            self.drafter.coming[tuple(tokens)] = expected.tokens
        way = self.rng.choice(sorted(WAYS))
        WAYS[way](self, tokens, options, expected)
        self.before = tokens + expected.tokens[: self.rng.randrange(len(expected.tokens) + 1)]

    def same(self, generation: Generation, expected: Generation) -> None:
        assert found(generation) == found(expected)
        assert generation.stats.exact
        if self.drafter is None and generation.stats.drafter_errors > 0:
            # A grammar may force text for which the small vocabulary of a random model has no
            # tokens.
            assert "no tokens for some of this text" in generation.stats.last_drafter_error
        self.n_accepted += generation.stats.accepted

    def generated(self, tokens: list[int], options: Any, expected: Generation) -> None:
        self.same(self.session.generate(tokens, **options), expected)

    def streamed(self, tokens: list[int], options: Any, expected: Generation) -> None:
        stream = self.session.stream(tokens, **options)
        assert "".join(chunk.text for chunk in stream) == expected.text
        self.same(stream.result(), expected)

    def some(self, tokens: list[int], options: Any) -> Any:
        """Read some chunks of a stream."""
        stream = self.session.stream(tokens, **options)
        for _ in range(self.rng.randrange(1, 6)):
            next(stream, None)
        return stream

    def left(self, tokens: list[int], options: Any, expected: Generation) -> None:
        self.some(tokens, options).close()
        self.generated(tokens, options, expected)

    def saved(self, tokens: list[int], options: Any, expected: Generation) -> None:
        stream = self.some(tokens, options)
        if self.rng.random() < 0.5:
            stream.close()
        try:
            self.session.save_state(self.state)
        except ArgumentError as error:
            assert "generate something first" in str(error)  # noqa: PT017
            stream.close()
        else:
            stream.close()
            self.session.load_state(self.state)
        self.generated(tokens, options, expected)

    def several(self, tokens: list[int], options: Any, expected: Generation) -> None:
        prompts = [tokens, tokens[: (len(tokens) + 1) // 2], tokens]
        results = self.session.generate(prompts, **options)
        for one, other in zip(results, self.plain.generate(prompts, **options), strict=True):
            self.same(one, other)

    def choices(self, tokens: list[int], options: Any, expected: Generation) -> None:
        results = self.session.generate(tokens, n=3, **options).choices
        others = self.plain.generate(tokens, n=3, **options).choices
        for one, other in zip(results, others, strict=True):
            self.same(one, other)

    def cancelled(self, tokens: list[int], options: Any, expected: Generation) -> None:
        handles = [self.session.submit(tokens, **options) for _ in range(3)]
        handles[1].cancel()
        self.same(handles[0].result(), expected)
        self.same(handles[2].result(), expected)

    def rejected(self, tokens: list[int], options: Any, expected: Generation) -> None:
        """This gives other texts; a later generation must be unchanged."""
        how = {"acceptance": "rejection", "lenience": self.rng.choice([1.0, 0.5])}
        self.session.generate(tokens, **(options | how))
        self.generated(tokens, options, expected)

    def replayed(self, tokens: list[int], options: Any, expected: Generation) -> None:
        if expected.tokens:
            rest = {name: value for name, value in options.items() if name not in TOLD}
            replay = self.session.replay(tokens, expected.tokens, **rest)
            assert replay.tokens == expected.tokens
        self.generated(tokens, options, expected)

    def searched(self, tokens: list[int], options: Any, expected: Generation) -> None:
        n_beams = self.rng.randrange(1, 5)
        most = min(options["max_tokens"], (self.plain.n_ctx - len(tokens)) // n_beams)
        if self.can_search and most > 0:
            how: dict[str, Any] = {
                "n_beams": n_beams,
                "max_tokens": most,
                "length_penalty": self.rng.choice([0, 1, -1, 2.5]),
                "early_stopping": self.rng.choice([True, False, "never"]),
                **{name: options[name] for name in ("stop", "reference") if name in options},
            }
            one, other = (each.beam_search(tokens, **how) for each in (self.session, self.plain))
            for beam, its in zip(one, other, strict=True):
                assert (beam.tokens, beam.text, beam.score) == (its.tokens, its.text, its.score)
                assert (beam.logprob, beam.finish_reason) == (its.logprob, its.finish_reason)
        self.generated(tokens, options, expected)


WAYS = {
    way.__name__: way
    for way in (
        Comparison.generated, Comparison.streamed, Comparison.left, Comparison.saved,
        Comparison.several, Comparison.choices, Comparison.cancelled, Comparison.rejected,
        Comparison.replayed, Comparison.searched,
    )
}  # fmt: skip


def test_random_options_change_no_token(folder: Path) -> None:
    assert sum(Comparison(folder, seed).run() for seed in range(N_DRAWS)) > 100


@pytest.mark.slow
def test_many_random_options_change_no_token(folder: Path) -> None:
    for seed in range(N_DRAWS, N_DRAWS + 1000):
        Comparison(folder, seed).run()
