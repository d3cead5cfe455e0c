"""The n-gram drafter proposes what its two parts say, put together in Python."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from prompts import PROMPTS
from specllama import Drafter, MatchFinder, NGramPredictor, SpecSession

Open = Callable[..., SpecSession]


class Twin(Drafter):
    """Frequencies until there is a match to copy on: of the sequence itself, or, where it is
    longer, of the reference."""

    def __init__(self, reference: list[int]) -> None:
        self.reference = reference

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:
        self.known: list[int] = []
        self.frequencies = NGramPredictor()
        self.frequencies.update_batch(self.reference)
        self.others = MatchFinder()
        self.others.append_batch(self.reference)

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        text = tokens.tolist()
        self.frequencies.update_batch(text[len(self.known) :])
        self.known = text
        predicted = [one.token for one in self.frequencies.predict(max_tokens)]
        for n in range(len(predicted) + 1):
            own = MatchFinder()
            own.append_batch(text + predicted[:n])
            copies = [
                own.predict(max_tokens - n),
                self.others.predict(max_tokens - n, text + predicted[:n]),
            ]
            best = max(copies, key=lambda copy: copy[0].length if copy else 0)
            if best:
                return [*predicted[:n], *(one.token for one in best)]
        return predicted


@pytest.mark.parametrize("spec_length", [3, 16])
@pytest.mark.parametrize("with_reference", [False, True])
def test_as_its_parts(
    open_session: Open,
    plain_tokens: dict[str, list[int]],
    spec_length: int,
    with_reference: bool,
) -> None:
    session = open_session(draft="ngram", spec_length=spec_length)
    for name in list(PROMPTS)[:4]:
        # With other tokens in between, so that copies end and begin.
        said = [token if i % 23 < 18 else i for i, token in enumerate(plain_tokens[name])]
        reference = said if with_reference else []
        twin = Twin(reference)
        expected = open_session(draft=twin, spec_length=spec_length).generate(
            PROMPTS[name], max_tokens=150
        )
        drafted = session.generate(PROMPTS[name], max_tokens=150, reference=reference)
        assert drafted.tokens == expected.tokens == plain_tokens[name][:150]
        assert expected.stats.drafter_errors == 0
        assert drafted.stats.by_round == expected.stats.by_round
        assert drafted.stats.accepted > 20
