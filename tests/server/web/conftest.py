"""A server and a browser that shows its page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Page, opened
from serving import Server, serve
from session_options import EXACT, FIXED
from specllama import SpecSession


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Continues texts; it wants a key."""
    with SpecSession(**EXACT, **FIXED) as session, serve(session, api_keys=("key",)) as running:
        yield running


@pytest.fixture(scope="module")
def chatting(smollm2: Path) -> Iterator[Server]:
    session = SpecSession(smollm2, n_threads=1, n_gpu_layers=0, **FIXED)
    with session, serve(session) as running:
        yield running


@pytest.fixture
def page(server: Server, tmp_path: Path) -> Iterator[Page]:
    page = opened(server, tmp_path)
    page.wait_for("at('model').textContent.includes('key is needed')")
    assert page.evaluate("document.activeElement === at('key')")
    page.type("key")
    page.press("Tab")
    page.wait_for("at('model').textContent.startsWith('test · llama')")
    yield page
    page.close()


@pytest.fixture
def chat(chatting: Server, tmp_path: Path) -> Iterator[Page]:
    page = opened(chatting, tmp_path)
    page.evaluate("at('max_tokens').value = 24")
    yield page
    page.close()
