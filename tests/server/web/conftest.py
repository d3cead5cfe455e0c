"""A server and a browser that shows its page."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from browser import CHROMIUM, Page, opened
from serving import Server, serve
from session_options import EXACT, FIXED
from specllama import SpecSession
from specllama.server.page import routes as page_routes
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

POLICY = "Content-Security-Policy"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that requires a key. Its model has no chat template."""
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
    page.wait_for("at('model').textContent.includes('key required')")
    assert page.evaluate("document.activeElement === at('key')")
    page.type("key")
    page.press("Enter")
    page.wait_for("at('model').textContent.startsWith('test · llama') && !at('settings').open")
    yield page
    page.close()


@pytest.fixture
def chat(chatting: Server, tmp_path: Path) -> Iterator[Page]:
    page = opened(chatting, tmp_path)
    page.evaluate("at('max_tokens').value = 24")
    yield page
    page.close()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page with only the libraries and the policy of the real page."""
    routes = page_routes()
    show = routes[0].endpoint

    async def show_empty(request: Request) -> Response:
        answer = await show(request)
        head, _, _ = answer.body.decode().partition('<script type="module"')
        return HTMLResponse(head, headers={POLICY: answer.headers[POLICY]})

    app = Starlette(routes=[Route("/empty", show_empty), *routes])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        assert CHROMIUM is not None
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/empty"
        page = Page(CHROMIUM, url, tmp_path_factory.mktemp("profile"))
        page.wait_for("document.readyState === 'complete' && 'hljs' in window")
        yield page
        page.close()
        running.should_exit = True
        thread.join()


@pytest.fixture
def blank(empty: Page) -> Page:
    """The page of `empty`, emptied again."""
    empty.evaluate("document.body.replaceChildren()")
    empty.errors.clear()
    return empty
