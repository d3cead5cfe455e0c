"""Decodes get rows beside those that are wanted where that makes them cheaper."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drafters import SometimesRight
from numpy.typing import NDArray
from specllama import SpecSession
from specllama._core.plan import CostCurve, Planner
from specllama.commands.spec_cli import executable

Open = Callable[..., SpecSession]
TEETH = {1: 1.0, 2: 4.0, 3: 4.1, 4: 4.2, 5: 4.3, 6: 4.4, 7: 4.5, 8: 1.5, 9: 6.0, 16: 8.0}
"""v(n) of kernels that take eight rows in less time than part of them."""


def learned(times: int) -> CostCurve:
    curve = CostCurve()
    for _ in range(times):
        for n, seconds in TEETH.items():
            curve.observe(n, 0, seconds)
    return curve


def test_the_width_is_the_cheapest_that_has_room() -> None:
    curve = learned(5)
    assert [curve.width(n) for n in range(1, 10)] == [1, 8, 8, 8, 8, 8, 8, 8, 9]


def test_what_is_not_beyond_doubt_is_not_believed() -> None:
    curve = CostCurve()
    assert [curve.width(n) for n in range(1, 66)] == [*range(1, 66)]
    for n, seconds in ((1, 1.0), (7, 2.1), (8, 2.0)):
        curve.observe(n, 0, seconds)
    assert curve.width(7) == 7


def test_spec_cli_says_so(toothed: Open) -> None:
    """Only where there were any."""
    toothed()
    options = ["-kv", "q8_0", "-fa", "on", "-ngl", "0", "-t", "1", "-n", "40", "--stats"]
    tables = [
        subprocess.run(
            [executable(), *options, *more, "-p", "a b c d a b c d a b c d"],
            capture_output=True, text=True, check=True,
        ).stderr
        for more in ([], ["--spec-length", "4"])
    ]  # fmt: skip
    assert re.search(r"^padded +\d+ rows$", tables[0], re.MULTILINE)
    assert "padded" not in tables[1]


def test_each_row_pays_for_its_context() -> None:
    curve = learned(5)
    for _ in range(40):  # where 1000 tokens of context make every row as dear as a decode
        for n, seconds in TEETH.items():
            curve.observe(n, 4000, seconds + 0.5 * n)
    assert curve.width(7, 0) == 8
    assert curve.width(2, 60_000) == 2


def test_a_planner_that_pads_prices_what_is_decoded() -> None:
    for pads in (False, True):
        planner = Planner(pads=pads)
        for _ in range(5):
            for n, seconds in TEETH.items():
                planner.cost.observe(n, 0, seconds)
        assert planner.width(3) == (8 if pads else 3)


@pytest.fixture
def toothed(open_session: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens sessions that believe in such kernels: so slow ones that nobody checks."""
    monkeypatch.setenv("SPECLLAMA_CACHE", str(tmp_path / "cache"))

    def open_toothed(**options: Any) -> SpecSession:
        with open_session(spec_length="auto", **options) as session:
            session.generate("import", max_tokens=1)
        (file,) = (tmp_path / "cache").glob("*.curve")
        key, *_ = file.read_text().splitlines()
        points = "\n".join(str(0.2 * TEETH.get(n, 0)) for n in range(1, 66))
        file.write_text(f"{key}\n0 0\n{points}\n")
        return open_session(spec_length="auto", **options)

    return open_toothed


class ThreeAtMost(SometimesRight):
    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        return super().propose(sequence, tokens, min(max_tokens, 3))


@pytest.mark.parametrize("n_seq", [1, 3])
def test_no_token_changes(open_session: Open, toothed: Open, n_seq: int) -> None:
    plain = open_session(None)
    prompts = ["import os\n", "def f(x):\n    return", "The quick brown"][:n_seq]
    expected = [plain.generate(prompt, max_tokens=60).tokens for prompt in prompts]
    drafter = ThreeAtMost(plain.n_vocab)
    session = toothed(draft=drafter, n_seq=n_seq)
    padded = 0  # the more of it, the less has been timed in truth
    for _ in range(2):
        for prompt, tokens in zip(prompts, expected, strict=True):
            drafter.coming = tokens
            generation = session.generate(prompt, max_tokens=60)
            assert generation.tokens == tokens
            padded += generation.stats.padded
    assert padded > 0


def test_nothing_is_left_of_them(open_session: Open, toothed: Open, tmp_path: Path) -> None:
    """Up to the context's end, where there is no room for them."""
    plain = open_session(None, n_ctx=64)
    prompt = plain.tokenize("import os\nimport")
    room = 64 - len(prompt)
    expected = plain.generate(prompt, max_tokens=room).tokens
    drafter = ThreeAtMost(plain.n_vocab)
    drafter.coming = expected
    session = toothed(draft=drafter, n_ctx=64)
    generation = session.generate(prompt, max_tokens=room)
    assert generation.tokens == expected
    assert generation.stats.padded > 0
    again = session.generate([*prompt, *expected[:20]], max_tokens=5)
    assert again.tokens == expected[20:25]
