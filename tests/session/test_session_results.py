"""How sessions and their results are displayed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prompts import PROMPTS
from specllama import SpecSession

Open = Callable[..., SpecSession]
PROMPT = PROMPTS["module"]


@pytest.mark.here_and_served
def test_the_repr_of_a_result_is_one_line(open_session: Open) -> None:
    session = open_session()
    result = session.generate(PROMPT, max_tokens=60, trace=True, logprobs=2)
    assert repr(result).startswith("<Generation ")
    assert len(repr(result)) < 200
    assert "tokens: 60, finish_reason: 'length'" in repr(result)
    assert "choices: 2" in repr(session.generate(PROMPT, max_tokens=2, n=2, temperature=1))


@pytest.mark.here_and_served
def test_notebooks_show_the_trace_or_else_the_text_and_its_statistics(open_session: Open) -> None:
    session = open_session()
    traced = session.generate(PROMPT, max_tokens=8, trace=True)
    assert traced.trace is not None
    assert traced._repr_html_() == traced.trace.to_fragment()
    plain = session.generate("<b>", max_tokens=8, echo=True)
    assert "&lt;b&gt;" in plain._repr_html_()
    assert "8 tokens in " in plain._repr_html_()


@pytest.mark.here_and_served
def test_streams_and_handles_show_their_state(open_session: Open) -> None:
    session = open_session()
    with session.stream(PROMPT, max_tokens=8) as stream:
        next(stream)
        assert repr(stream) == "<Stream, running>"
    assert repr(stream) == "<Stream, ended>"
    first, second = (session.submit(PROMPT, max_tokens=500, ignore_eos=True) for _ in range(2))
    next(iter(first))
    assert (repr(first), repr(second)) == ("<Handle, running>", "<Handle, waiting>")
    first.cancel()
    second.cancel()
    first.result()
    assert repr(first) == "<Handle, ended>"
