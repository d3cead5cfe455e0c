"""Edited conversations continue from a checkpoint at the end of an earlier message, if the memory
cannot be rewound."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from near_ties import tie
from random_model import CUTTABLE, EOS, WRITERS, words
from session_options import EXACT_HERE, Open
from specllama import ArgumentError, SpecSession

KINDS = sorted(WRITERS.keys() - CUTTABLE)
NEAR = 0.15
"""Nats: rounding that a state carries along."""
AN_ANSWER: dict[str, Any] = {"logit_bias": {EOS: -100.0}, "max_tokens": 20, "logprobs": 20}
CLOSEST = 64
"""Least number of tokens between two checkpoints."""

MESSAGES = [[*words(70, seed), EOS] for seed in range(11)]
"""User and assistant alternate; the first and the last are the user's."""


def prompt(messages: list[list[int]]) -> list[int]:
    return [1, *(token for message in messages for token in message), 3, 4, 5, 6]


def grown(session: SpecSession) -> None:
    """Let a conversation grow turn by turn."""
    for n in range(1, len(MESSAGES) + 1, 2):
        session.generate(prompt(MESSAGES[:n]), max_tokens=8, logit_bias={EOS: -100.0})


def edited(back: int) -> list[int]:
    """Return the conversation with other text from its message `back` from the end on."""
    return prompt([*MESSAGES[:-back], words(40, seed=100 + back)])


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return WRITERS[request.param](tmp_path / "random.gguf")


@pytest.mark.parametrize("n_seq", [1, 4])
def test_an_edited_conversation_gets_the_tokens_of_a_new_decode(
    model: Path, open_session: Open, n_seq: int
) -> None:
    session = open_session(model, n_seq=n_seq, n_batch=64)
    solo = open_session(model, None, n_batch=64)
    grown(session)
    for back in (1, 3, 6, 10):
        found = session.generate(edited(back), **AN_ANSWER)
        n_kept = 1 + sum(map(len, MESSAGES[:-back]))
        assert n_kept - 2 * len(MESSAGES[0]) <= found.stats.reused_tokens <= n_kept
        expected = solo.generate(edited(back), cache_prompt=False, **AN_ANSWER)
        distance = tie(expected, found.tokens)
        assert distance is None or distance < NEAR


@pytest.mark.parametrize("n_seq", [1, 4])
@pytest.mark.parametrize("kind", ["sliding window", "delta net", "hybrid with snapshots"])
def test_an_edited_conversation_is_exact_in_exact_sessions(
    open_session: Open, tmp_path: Path, kind: str, n_seq: int
) -> None:
    model = WRITERS[kind](tmp_path / "random.gguf")
    session = open_session(model, exact=EXACT_HERE, n_seq=n_seq, n_batch=64)
    solo = open_session(model, None, exact=EXACT_HERE)
    grown(session)
    for back in (1, 3, 10):
        found = session.generate(edited(back), **AN_ANSWER)
        assert found.stats.reused_tokens > 0
        expected = solo.generate(edited(back), cache_prompt=False, **AN_ANSWER)
        assert found.tokens == expected.tokens
        if EXACT_HERE is True:
            assert [one.top for one in found.logprobs] == [one.top for one in expected.logprobs]


def test_a_whole_conversation_gets_checkpoints_at_ends_of_messages(
    model: Path, open_session: Open
) -> None:
    session = open_session(model)
    ends = [*accumulate(map(len, MESSAGES), initial=1)]
    for back in (1, 3, 6, 10):
        session.generate([7], max_tokens=1, cache_prompt=False)
        session.generate(prompt(MESSAGES), max_tokens=1)
        found = session.generate(edited(back), max_tokens=1)
        assert found.stats.reused_tokens == ends[len(MESSAGES) - back]


def test_checkpoints_are_at_the_given_message_ends(model: Path, open_session: Open) -> None:
    session = open_session(model)
    text = words(400, seed=1)
    for place in (100, 250):
        session.generate([7], max_tokens=1, cache_prompt=False)
        session.generate(text, max_tokens=1, message_ends=[100, 250])
        found = session.generate([*text[:place], 7, 8], max_tokens=1)
        assert found.stats.reused_tokens == place


@pytest.mark.parametrize(
    ("ends", "said"), [([0], "has 0,"), ([5, 5], "has 5,"), ([11], "has 11,"), ("x", "list")]
)
def test_invalid_message_ends_are_refused(open_session: Open, ends: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=f"message_ends.*{said}"):
        open_session().generate([*range(5, 15)], max_tokens=1, message_ends=ends)


def test_few_checkpoints_are_spread_over_the_text(model: Path, open_session: Open) -> None:
    """However long the text grows: at most the text's length divided by their number is decoded
    again."""
    most = 4
    session = open_session(model, ctx_checkpoints=most)
    for back in (1, 4, 7, 10):
        grown(session)
        found = session.generate(edited(back), max_tokens=1).stats
        n_kept = 1 + sum(map(len, MESSAGES[:-back]))
        n_all = len(prompt(MESSAGES))
        assert n_kept - found.reused_tokens <= 2 * n_all / most + len(MESSAGES[0])


@pytest.mark.parametrize("options", [{"ctx_checkpoints": 0}, {"checkpoint_ram": 0}], ids=str)
def test_without_checkpoints_an_edited_conversation_is_decoded_again(
    model: Path, open_session: Open, options: dict[str, Any]
) -> None:
    session = open_session(model, n_batch=64, **options)
    grown(session)
    assert session.generate(edited(5), max_tokens=1).stats.reused_tokens == 0
    assert session.generate(prompt(MESSAGES), **AN_ANSWER).tokens


def test_slots_share_the_ram_for_checkpoints(open_session: Open, tmp_path: Path) -> None:
    """The slot with the most checkpoints loses some; the latest checkpoint of another slot is
    kept."""
    model = WRITERS["sliding window"](tmp_path / "random.gguf")
    session = open_session(model, n_seq=2, checkpoint_ram=1)
    grown(session)
    other = [*words(300, seed=50)]
    session.generate(other, max_tokens=1, id_slot=1)
    assert session.generate([*other[:-2], 8], max_tokens=1, id_slot=1).stats.reused_tokens >= 290
    assert session.generate(edited(2), max_tokens=1, id_slot=0).stats.reused_tokens > 0
