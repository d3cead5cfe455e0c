"""Each request chooses its drafters and how much they draft; its tokens stay the same."""

from __future__ import annotations

from typing import Any

import pytest
from prompts import PROMPTS
from session_options import EXACT_HERE, Open
from specllama import ArgumentError, SpecSession
from specllama.session import BUNDLED_DRAFT

PROMPT = PROMPTS["module"]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ALLOWED: dict[str, set[str]] = {
    "none": set(),
    "model": {"model", "grammar"},
    "ngram": {"ngram", "match", "grammar"},
}


@pytest.fixture(params=["planned", "fixed", "trees"])
def session(request: pytest.FixtureRequest, open_session: Open, open_planned: Open) -> SpecSession:
    """A draft model and n-grams. Only trees use all of them in every round. Other sessions are
    exact, so that requests can run at the same time."""
    if request.param == "trees":
        return open_session(draft=BUNDLED_DRAFT, spec_tree=2)
    open_one = open_planned if request.param == "planned" else open_session
    return open_one(draft=BUNDLED_DRAFT, n_seq=2, exact=EXACT_HERE)


def used(generation: Any) -> set[str]:
    return {name for name, (drafted, _) in generation.stats.by_drafter.items() if drafted > 0}


@pytest.mark.parametrize("more", [{}, {"json_schema": SCHEMA}], ids=["free", "by a schema"])
def test_a_request_chooses_its_drafters(
    session: SpecSession, open_session: Open, more: dict[str, Any]
) -> None:
    options = {"max_tokens": 60, **more}
    expected = open_session(draft=None).generate(PROMPT, **options).tokens
    kinds = [one for one in ALLOWED if one != "ngram" or session._backend.drafts_by_ngram]
    handles = [session.submit(PROMPT, spec_type=kind, **options) for kind in kinds]
    handles.append(session.submit(PROMPT, spec_length=0, **options))
    short = session.submit(PROMPT, spec_length=1, **options)
    assert short.result().tokens == expected
    for kind, handle in zip([*kinds, "none"], handles, strict=True):
        found = handle.result()
        assert found.tokens == expected, kind
        assert used(found) <= ALLOWED[kind], kind
        assert found.stats.drafter_errors == 0


def test_a_request_limits_its_draft_length(session: SpecSession, open_session: Open) -> None:
    expected = open_session(draft=None).generate(PROMPT, max_tokens=60).tokens
    for most in (1, 2, 1000):
        found = session.generate(PROMPT, max_tokens=60, spec_length=most)
        assert found.tokens == expected
        assert len(found.stats.drafted_by_position) <= most


def test_drafters_that_the_session_does_not_have_are_refused(open_session: Open) -> None:
    with pytest.raises(ArgumentError, match=r'spec_type is "model".* no draft model'):
        open_session(draft="ngram").generate(PROMPT, max_tokens=1, spec_type="model")
    with pytest.raises(ArgumentError, match=r'spec_type is "ngram".* no drafter that copies'):
        open_session(draft=BUNDLED_DRAFT).generate(PROMPT, max_tokens=1, spec_type="ngram")
    for wrong in ("frob", "", None, 1):
        with pytest.raises(ArgumentError, match="spec_type must be"):
            open_session().generate(PROMPT, max_tokens=1, spec_type=wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="spec_length must be 0 or more"):
        open_session().generate(PROMPT, max_tokens=1, spec_length=-1)
