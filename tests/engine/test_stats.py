"""Statistics are consistent."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest
from prompts import PROMPTS, most_tokens
from session_options import Open
from specllama import _core
from specllama._core import Source
from specllama.session import BUNDLED_DRAFT


@pytest.mark.parametrize("spec_length", [1, 4, 16])
def test_the_counts_in_stats_agree_with_each_other(open_session: Open, spec_length: int) -> None:
    session = open_session(spec_length=spec_length)
    for name, prompt in PROMPTS.items():
        generation = session.generate(prompt, max_tokens=most_tokens(session, prompt, 100))
        stats = generation.stats
        assert stats.prompt_tokens == len(session.tokenize(prompt)), name
        assert stats.rounds == len(stats.by_round)
        assert stats.drafted == sum(drafted for drafted, _ in stats.by_round)
        assert stats.accepted == sum(accepted for _, accepted in stats.by_round)
        assert stats.drafted == sum(stats.drafted_by_position)
        assert stats.accepted == sum(stats.accepted_by_position)
        # Every round gives its accepted tokens and one more. An end-of-generation token counts as
        # one of these, but not as generated.
        given = stats.rounds + stats.accepted
        if generation.finish_reason == "length":
            assert stats.generated_tokens == given
        else:
            assert given - 2 <= stats.generated_tokens < given
        # The round that finds the end counts, too: plain decoding has 1 token per round.
        assert given - 1 <= stats.chosen_tokens <= given
        assert stats.tokens_per_round == pytest.approx(stats.chosen_tokens / stats.rounds)
        assert all(accepted <= drafted <= spec_length for drafted, accepted in stats.by_round)
        for i, drafted in enumerate(stats.drafted_by_position):
            assert drafted == sum(d > i for d, _ in stats.by_round)
            assert stats.accepted_by_position[i] == sum(a > i for _, a in stats.by_round)


def test_plain_decoding_has_one_token_per_round_whatever_ends_it(open_session: Open) -> None:
    session = open_session(draft=None)
    whole = session.generate(PROMPTS["module"], max_tokens=40)
    stop = whole.text[20:24]
    for options in ({"max_tokens": 40}, {"stop": stop}, {"max_tokens": None}):
        found = session.generate(PROMPTS["module"], **options)  # type: ignore[arg-type]
        assert found.stats.tokens_per_round == 1, options


def test_break_even_is_reported_if_a_draft_model_was_timed(open_session: Open) -> None:
    planned = {"spec_length": "auto", "n_ctx": 512}
    found = (
        open_session(draft=BUNDLED_DRAFT, **planned).generate("import os\n", max_tokens=60).stats
    )
    assert 0 < found.draft_break_even <= 2
    assert found.draft_step_seconds > 0
    found = open_session(**planned).generate("import os\n", max_tokens=20).stats
    assert found.draft_break_even == 0


def test_by_drafter_has_the_names_of_all_sources(open_session: Open) -> None:
    stats = open_session().generate("import", max_tokens=1).stats
    assert list(stats.by_drafter) == [source.name for source in Source]


def test_seconds_of_the_parts_add_up_to_the_total(open_session: Open) -> None:
    """Of several generations the best one counts, because a busy machine pauses some."""
    session = open_session()
    for name in ("module", "english", "near the limit"):
        explained = []
        for _ in range(5):
            seconds = session.generate(
                PROMPTS[name], max_tokens=None if name == "near the limit" else 200
            ).stats.seconds
            parts = seconds.prefill + seconds.draft + seconds.verify + seconds.choose + seconds.text
            assert min(seconds.prefill, seconds.draft, seconds.verify, seconds.choose) > 0
            assert parts < 1.001 * seconds.total
            explained.append(parts / seconds.total)
        assert max(explained) > 0.95, name


def test_the_rates_of_an_empty_generation_are_zero(open_session: Open) -> None:
    stats = open_session().generate("x", max_tokens=0).stats
    assert stats.acceptance_rate == stats.tokens_per_round == stats.tokens_per_second == 0
    assert stats.rounds == 0


def test_to_dict_has_every_statistic(open_session: Open) -> None:
    stats = open_session().generate("import os\n", max_tokens=20).stats
    data = stats.to_dict()
    for name, value in data.items():
        if name != "seconds":
            assert getattr(stats, name) == value
    seconds = data["seconds"]
    assert isinstance(seconds, dict)
    assert seconds == {name: getattr(stats.seconds, name) for name in seconds}
    assert repr(stats).startswith(f"Stats(prompt_tokens={stats.prompt_tokens}, generated_tokens=20")
    assert len(repr(stats)) < 200


def test_stats_of_a_running_stream_are_a_snapshot(open_session: Open) -> None:
    stream = open_session().stream(PROMPTS["module"], max_tokens=50)
    next(stream)
    early = stream.stats
    assert 0 < early.generated_tokens < 50
    list(stream)
    assert early.generated_tokens < 50  # a snapshot
    assert stream.stats.generated_tokens == 50


def test_a_generation_can_be_copied_and_pickled(open_session: Open) -> None:
    options: dict[str, Any] = {"max_tokens": 40, "logprobs": 2, "temperature": 0.5, "seed": 1}
    session = open_session(draft="ngram")
    found = session.generate(PROMPTS["module"], trace=True, **options)
    assert found.stats.drafted > 0
    for again in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert (again.text, again.tokens) == (found.text, found.tokens)
        assert again.stats.to_dict() == found.stats.to_dict()
        assert repr(again.logprobs) == repr(found.logprobs)
        assert [one.top for one in again.logprobs] == [one.top for one in found.logprobs]
        assert str(again.trace) == str(found.trace)
        assert again.trace is not None
        assert found.trace is not None
        assert again.trace.to_html() == found.trace.to_html()
    assert repr(copy.copy(found.stats.seconds)) == repr(found.stats.seconds)
    assert dataclasses.asdict(found)["stats"].to_dict() == found.stats.to_dict()
    chunks = list(session.stream(PROMPTS["module"], **options))
    assert repr(pickle.loads(pickle.dumps(chunks))) == repr(chunks)
    assert copy.copy(chunks[-1]).finish_reason == chunks[-1].finish_reason


def test_tampered_pickles_are_refused() -> None:
    """Such a state is not read as another object."""
    drafted = _core.DraftedToken
    whole = (1, Source.match, 1, 0.5, 0, True)
    for i, wrong in ((1, 99), (1, "match"), (0, "x"), (3, None)):
        state = (*whole[:i], wrong, *whole[i + 1 :])
        with pytest.raises((TypeError, RuntimeError)):
            drafted.__new__(drafted).__setstate__(state)  # type: ignore[attr-defined]
    for source in Source:
        one = drafted.__new__(drafted)
        one.__setstate__((1, source, 1, 0.5, 0, True))  # type: ignore[attr-defined]
        assert pickle.loads(pickle.dumps(one)).drafter == source.name
