"""The page, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Page, find_chromium
from conftest import EXACT, FIXED
from serving import Server, serve
from specllama import SpecSession

CHROMIUM = find_chromium()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to show the page in"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with SpecSession(**EXACT, **FIXED) as session, serve(session, api_key="key") as running:
        yield running


@pytest.fixture(params=[False, True], ids=["light", "dark"])
def page(server: Server, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    assert CHROMIUM is not None
    opened = Page(CHROMIUM, server.url, tmp_path, dark=request.param)
    yield opened
    opened.close()


def test_a_generation(server: Server, page: Page) -> None:
    page.wait_for("document.getElementById('model')?.textContent.includes('key is needed')")
    page.evaluate("at('key').value = 'key'; connect()")
    page.wait_for("at('model').textContent.startsWith('test · llama')")
    assert page.evaluate("at('mode').value") == "completions"  # it has no chat template

    page.evaluate("at('max_tokens').value = 60; at('form').requestSubmit()")
    page.wait_for("at('accepted').textContent.includes(' of ') && !at('go').disabled")
    expected = server.session.generate("def fibonacci(n):\n", max_tokens=60)
    assert page.evaluate("at('text').textContent") == "def fibonacci(n):\n" + expected.text
    drafted = page.evaluate(
        "[...document.querySelectorAll('#text .draft')].map(e => e.textContent)"
    )
    assert 0 < sum(map(len, drafted)) < len(expected.text)
    assert page.evaluate("at('tokens').textContent") == "60"
    stats = expected.stats
    assert page.evaluate("at('accepted').textContent") == f"{stats.accepted} of {stats.drafted}"

    page.evaluate("at('temperature').value = -1")
    page.evaluate("at('form').noValidate = true; at('form').requestSubmit()")
    page.wait_for("at('error').textContent.includes('temperature')")
    # The 401 and the 400 above; nothing that the page did wrong, nothing that its policy forbids.
    assert all("status of 40" in error for error in page.errors), page.errors


def test_stopping(server: Server, page: Page) -> None:
    page.evaluate("at('key').value = 'key'; at('max_tokens').value = 1900")
    page.wait_for("typeof at === 'function' && document.readyState === 'complete'")
    page.evaluate("at('key').value = 'key'; at('max_tokens').value = 1900")
    page.evaluate("at('temperature').value = 1; at('seed').value = 3")
    page.evaluate("at('form').requestSubmit()")
    page.wait_for("Number(at('tokens').textContent) > 5")
    page.evaluate("at('end').click()")
    page.wait_for("!at('go').disabled")
    assert page.evaluate("at('error').textContent") == ""
    while server.session.load.n_running:
        pass


def test_light_and_dark(page: Page, request: pytest.FixtureRequest) -> None:
    page.wait_for("document.readyState === 'complete' && !!document.getElementById('text')")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    dark = "dark" in request.node.name.rsplit("[", 1)[1]
    assert ground == ("rgb(24, 24, 24)" if dark else "rgb(255, 255, 255)")
