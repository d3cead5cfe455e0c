"""Traces of rounds, and replayed texts."""

from __future__ import annotations

from typing import Any

import pytest
from prompts import PROMPTS
from session_options import Open
from specllama import ArgumentError
from specllama.session import BUNDLED_DRAFT

PROMPT = PROMPTS["module"]


@pytest.mark.parametrize("options", [{"spec_length": "auto"}, {"spec_length": 4}, {"draft": None}])
def test_rounds_of_a_trace_rebuild_the_generation(
    open_session: Open, options: dict[str, Any]
) -> None:
    session = open_session(**({"draft": BUNDLED_DRAFT} | options))
    generation = session.generate(PROMPT, max_tokens=100, trace=True)
    stats = generation.stats
    tokens: list[int] = []
    by_drafter = dict.fromkeys(stats.by_drafter, (0, 0))
    assert generation.trace is not None
    rounds = generation.trace.rounds
    for one in rounds:
        assert one.position == len(tokens)
        tokens += [drafted.token for drafted in one.draft if drafted.accepted]
        assert one.next is not None
        tokens.append(one.next)
        for i, drafted in enumerate(one.draft):
            n, right = by_drafter[drafted.drafter]
            by_drafter[drafted.drafter] = n + 1, right + drafted.accepted
            assert drafted.parent is None or drafted.parent < i
            assert 0 <= drafted.confidence <= 1
        assert (one.expected_tokens > 0) == (options.get("spec_length") == "auto")
    assert tokens == generation.tokens
    assert by_drafter == stats.by_drafter
    assert [(len(r.draft), r.accepted) for r in rounds] == stats.by_round
    assert sum(r.decode_seconds for r in rounds) <= stats.seconds.verify
    assert session.generate(PROMPT, max_tokens=10).trace is None


def test_replay_gives_the_text_with_every_drafter(open_session: Open, open_planned: Open) -> None:
    text = "    # nothing that the model would say\n    self.x = 7\n" * 4
    for draft in (None, "ngram", BUNDLED_DRAFT):
        for open_one in (open_planned, open_session):
            session = open_one(draft=draft)
            generation = session.replay(PROMPT, text)
            assert generation.text == text
            assert generation.finish_reason == "length"
            assert generation.tokens == session.tokenize(text, add_special=False)
            assert (generation.stats.accepted > 0) == (draft is not None)  # it repeats itself
            # The replayed text does not stay in the session.
            assert session.generate(PROMPT, max_tokens=5).tokens != generation.tokens[:5]


def test_replay_of_the_models_own_text_has_the_same_rounds(open_session: Open) -> None:
    session = open_session(spec_length=4)
    said = session.generate(PROMPT, max_tokens=60)
    replayed = session.replay(PROMPT, said.tokens)
    assert replayed.tokens == said.tokens
    assert replayed.stats.by_round == said.stats.by_round


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "The text to replay is empty"),
        ([], {}, "The text to replay is empty"),
        ([1, 9999], {}, "Token 9999 in the replayed text is out of range"),
        ("x", {"stop": "y"}, "replay takes no stop"),
        ("x", {"max_tokens": 3}, "replay takes no max_tokens"),
        ([5] * 5000, {}, "max_tokens is 5000, but after the prompt"),
        (7, {}, "text must be"),
    ],
)
def test_unusable_texts_for_replay_are_refused(
    open_session: Open, text: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        open_session().replay(PROMPT, text, **options)
