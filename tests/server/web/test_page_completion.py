"""Continuing a text on the page."""

from __future__ import annotations

import pytest
from browser import CHROMIUM, LAST, Page, button, reload
from serving import Server

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="requires Chromium")

FIGURES = "document.querySelector('#completion .figures')?.textContent"
PROMPT = "def fibonacci(n):\n"


def generate(page: Page) -> None:
    page.evaluate(f"at('prompt').value = {PROMPT!r}; at('max_tokens').value = 60")
    page.evaluate("at('form').requestSubmit()")
    page.wait_for(f"at('end').hidden && !!{FIGURES}")


def test_the_page_continues_a_text(server: Server, page: Page) -> None:
    # The model has no chat template.
    assert page.evaluate("document.querySelector('[value=chat]').disabled")
    assert page.evaluate("document.querySelector('[value=compare]').disabled")
    assert page.evaluate("document.body.dataset.mode") == "completion"
    generate(page)
    expected = server.session.generate(PROMPT, max_tokens=60)
    assert page.evaluate(f"{LAST}.textContent") == PROMPT + expected.text
    drafted = page.evaluate(
        "[...document.querySelectorAll('.answer .drafted')].map(e => e.textContent)"
    )
    assert 0 < sum(map(len, drafted)) < len(expected.text)
    figures = page.evaluate(FIGURES)
    for figure in (
        "60 tokens",
        f"{expected.stats.accepted} of {expected.stats.drafted} drafted tokens accepted",
        "tokens per round",
        "slot 0",
    ):
        assert figure in figures

    # The only errors are the 401s before the key was entered: the policy blocked nothing.
    assert all("status of 40" in error for error in page.errors), page.errors

    reload(page)
    page.press("Escape")  # the page asks for the key again
    page.evaluate("document.querySelector('[value=completion]').click()")
    assert page.evaluate(f"{LAST}.textContent") == PROMPT + expected.text
    assert page.evaluate(FIGURES) == figures
    assert page.evaluate(f"!!{button('Trace')}")
    assert page.evaluate("at('prompt').value") == PROMPT


def test_the_key_is_not_stored(page: Page) -> None:
    assert page.evaluate("at('key').value") == "key"
    generate(page)
    assert page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})").count("key") == 0


def test_the_trace_can_be_read_with_the_keyboard(page: Page) -> None:
    generate(page)
    page.evaluate(f"{button('Trace')}.focus()")
    page.press("Enter")
    page.wait_for("document.querySelectorAll('.picture .strip path').length > 1")
    for _ in range(3):  # the strip is a tab stop before the tokens
        page.press("Tab")
        if page.evaluate("document.activeElement.matches('.picture .text')"):
            break
    shown = "document.querySelector('.picture output').textContent"
    page.press("ArrowRight")
    first = page.evaluate(shown)
    assert first.startswith("round 1: ")
    below = "document.querySelector('.picture output').getBoundingClientRect().bottom"
    assert page.evaluate(f"{below} <= at('form').getBoundingClientRect().top + 1")
    page.press("ArrowRight")
    assert page.evaluate(shown) != first
    page.press("ArrowLeft")
    assert page.evaluate(shown) == first
    assert all("status of 40" in error for error in page.errors), page.errors
