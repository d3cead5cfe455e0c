"""The page's comparison of a question without and with drafts."""

from __future__ import annotations

import pytest
from browser import CHROMIUM, Page
from serving import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="requires Chromium"),
]

QUESTION = "Repeat this: one two three four five six seven eight one two three four five six."
SHOWN = "['plain', 'drafts'].map(side => at(side).querySelector('.text').innerText)"


def compare(page: Page) -> None:
    page.evaluate("document.querySelector('[value=compare]').click(); at('prompt').focus()")
    page.type(QUESTION)
    page.press("Enter")


@pytest.mark.parametrize("at_once", [True, False])
def test_both_sides_answer_alike_and_only_one_drafts(
    chatting: Server, chat: Page, at_once: bool
) -> None:
    chat.evaluate(f"at('at-once').disabled = false; at('at-once').checked = {str(at_once).lower()}")
    compare(chat)
    chat.wait_for("at('end').hidden && at('verdict').textContent.includes('speed without drafts')")
    expected = chatting.session.chat([{"role": "user", "content": QUESTION}], max_tokens=24)
    assert chat.evaluate(SHOWN) == [expected.text.strip()] * 2
    assert "Both texts are identical" in chat.evaluate("at('verdict').textContent")
    assert chat.evaluate("document.querySelectorAll('#plain .drafted').length") == 0
    assert chat.evaluate("document.querySelectorAll('#drafts .drafted').length") > 0
    rates = chat.evaluate("['plain-rate', 'drafts-rate'].map(one => at(one).textContent)")
    for rate in rates:
        assert f"{expected.stats.generated_tokens} tokens" in rate
        assert "per round" in rate
    assert "1.00 per round" in rates[0]
    assert "1.00 per round" not in rates[1]
    assert chat.errors == []


def test_stopping_stops_both_sides(chat: Page) -> None:
    chat.evaluate("at('max_tokens').value = 1500; at('temperature').value = 1")
    compare(chat)
    chat.wait_for(f"{SHOWN}.some(text => text.length > 0)")
    chat.press("Escape")
    chat.wait_for("at('end').hidden && at('verdict').textContent === 'Stopped.'")
    assert chat.evaluate("at('error').textContent") == ""


def test_a_question_that_exceeds_the_context_shows_an_error_and_stays(chat: Page) -> None:
    chat.evaluate("document.querySelector('[value=compare]').click()")
    chat.evaluate("at('prompt').value = 'word '.repeat(9000); at('form').requestSubmit()")
    chat.wait_for("at('end').hidden && at('error').textContent.includes('tokens')")
    chat.wait_for("at('prompt').value.length > 9000")
