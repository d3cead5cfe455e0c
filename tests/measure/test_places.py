"""Acceptance by position in a draft: heads and block drafters in `specllama alpha`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from blocks import KINDS, write_block
from heads import write_eagle3, write_perfect_pair
from random_model import write_dense
from specllama.__main__ import main
from specllama.measure.places import Places, by_place
from specllama.theory import DecodeTimes


def test_acceptance_by_position_counts_tokens_after_accepted_ones_only() -> None:
    rounds = [(3, 3), (3, 1), (3, 0), (2, 2), (0, 0), (1, 1)]
    assert by_place(rounds) == pytest.approx((4 / 5, 2 / 3, 1))
    assert by_place([]) == by_place([(0, 0)]) == ()


def test_a_block_drafter_pays_one_decode_for_all_its_tokens() -> None:
    flat = DecodeTimes([1.0] * 5)
    in_turn, at_once = (
        Places("draft", 0.0, "coupled", (0.8,) * 4, 3.36, at_once) for at_once in (False, True)
    )
    assert in_turn.best(flat, 0.9) == (0, 1.0)
    assert at_once.best(flat, 0.9) == (4, pytest.approx(3.3616 / 1.9))


RULES = ((0.0, "coupled"), (1.0, "coupled"), (1.0, "rejection"))


PROMPTS = [[1, *range(first, first + 11)] for first in (5, 9)]


@pytest.fixture
def _prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models of these tests have no tokens for texts."""
    monkeypatch.setattr("specllama.commands.alpha._prompts", lambda model, arguments: PROMPTS)


def measured(capsys: pytest.CaptureFixture[str], target: Path, draft: Path) -> tuple[Any, str]:
    """Return the command's output as JSON and as tables."""
    size = ["-n", "24", "--prompt-length", "12", "-t", "1", "-ngl", "0"]
    command = ["alpha", "-m", str(target), "-md", str(draft), "--temp", "0", "1", *size]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(command) == 0
    return found, capsys.readouterr().out


@pytest.mark.usefixtures("_prompts")
def test_alpha_command_reports_a_perfect_head_as_always_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, head = write_perfect_pair(tmp_path, shares=True)
    found, table = measured(capsys, target, head)
    (greedy, *_) = found["places"]
    assert greedy["by_place"] == [1.0] * 8
    assert greedy["tokens_per_round"] > 4
    assert "Acceptance by position in a draft" in table


@pytest.mark.usefixtures("_prompts")
def test_alpha_command_measures_all_heads_and_block_drafters_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = write_dense(tmp_path / "target.gguf")
    drafts = [
        write_eagle3(tmp_path / "eagle3.gguf"),
        *(write_block(tmp_path / f"{kind}.gguf", kind) for kind in KINDS),
    ]
    found, table = measured(capsys, target, tmp_path)
    names = {draft.name for draft in drafts}
    assert set(found["draft_steps"]) == names
    places = {(one["drafter"], one["temperature"], one["acceptance"]) for one in found["places"]}
    assert places == {(name, *rule) for name in names for rule in RULES}
    assert all(one["at_once"] == (one["drafter"] != "eagle3.gguf") for one in found["places"])
    assert "At T = 1 " in table


def test_alpha_command_refuses_a_text_that_the_model_has_no_tokens_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, head = write_perfect_pair(tmp_path, shares=True)
    assert main(["alpha", "-m", str(target), "-md", str(head), "-ngl", "0"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
