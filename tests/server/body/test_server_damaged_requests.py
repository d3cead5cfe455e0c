"""Randomly damaged requests: each is answered or refused, and the server keeps working."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from bodies import BODIES, FUNCTION, Raw, request, write_model, written
from prompts import TOO_COMPLEX
from session_options import EXACT
from specllama import SpecSession
from specllama.server.app import App
from specllama.server.settings import Settings


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpecSession]:
    path = write_model(tmp_path_factory.mktemp("damage"))
    with SpecSession(path, n_seq=4, max_queue=4096, verifies=True, **EXACT) as opened:
        assert opened.has_infill
        yield opened


async def status(app: App, one: tuple[str, str, bytes, dict[str, str]]) -> tuple[int, str]:
    """Send a request; return the status of the answer and its text."""
    method, path, content, headers = one
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        answer = await client.request(method, path, content=content, headers=raw, timeout=60)
        return answer.status_code, answer.text


def check_all(session: SpecSession, n: int, seed: int) -> dict[int, int]:
    """Send n damaged requests; return the number of answers by status."""
    rng = random.Random(seed)
    app = App(session, Settings("m"))
    counts: dict[int, int] = {}

    async def send_all() -> None:
        for _ in range(0, n, 8):
            some = [request(rng) for _ in range(8)]
            answers = await asyncio.gather(
                *(asyncio.wait_for(status(app, one), 60) for one in some)
            )
            for one, (code, text) in zip(some, answers, strict=True):
                counts[code] = counts.get(code, 0) + 1
                assert code < 500, (one, text)
                assert "server_error" not in text, (one, text)
                if code >= 400 and one[0] != "HEAD":
                    error = json.loads(text)["error"]
                    if one[1].startswith("/api/"):
                        assert isinstance(error, str), (one, text)
                        continue
                    names = set(error)
                    forms = [{"message", "type", "param", "code"}]
                    if "messages" in one[1]:
                        forms.append({"message", "type"})
                    assert names in forms, (one, text)

    asyncio.run(send_all())
    return counts


def test_undamaged_bodies_are_answered(session: SpecSession) -> None:
    """Two are refused: log-probabilities of an echo, and a round of no generation."""
    app = App(session, Settings("m"))
    refused = []
    for path, body in BODIES:
        code, text = asyncio.run(status(app, ("POST", path, written(body), {})))
        if code != 200:
            refused.append((code, path, "exclude each other" in text))
    assert refused == [(400, "/v1/completions", True), (410, "/v1/verify/x", False)]


def test_damaged_requests_are_answered_or_refused(session: SpecSession) -> None:
    counts = check_all(session, 600, seed=1)
    assert counts[400] > 250
    assert counts[200] > 80
    assert session.generate("a", max_tokens=2).stats.generated_tokens == 2


@pytest.mark.slow
def test_many_damaged_requests_are_answered_or_refused(session: SpecSession) -> None:
    for seed in range(2, 7):
        check_all(session, 3000, seed)


PART = {"type": "message", "role": "user", "content": "a"}


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        # Fields that the answer repeats.
        ("/v1/responses", {"input": "a", "metadata": {"a": "\ud800"}}, 200),
        ("/v1/responses", {"input": "a", "metadata": {"a": Raw("1e999")}}, 400),
        ("/v1/responses", {"input": [PART], "text": {"x": "\udc00"}, "user": "\ud800"}, 200),
        ("/apply-template", {"messages": [{"role": "\ud800", "content": "a"}]}, 400),
        # Names in error messages.
        ("/v1/chat/completions", {"messages": [PART], "tools": [{"type": "function", "function":
         {"name": "f", "parameters": {"properties": {"\ud800": 5}}}}]}, 200),
        # A message without a role, in a template that describes tools in a message.
        ("/v1/chat/completions", {"messages": [{"content": "a"}],
         "tools": [{"type": "function", "function": FUNCTION}]}, 400),
        ("/infill", {"input_prefix": "a", "input_suffix": "b",
         "input_extra": [{"filename": "\ud800", "text": "x"}]}, 200),
        ("/infill", {"input_prefix": "a", "input_suffix": "b",
         "input_extra": [{"text": "\ud800"}]}, 200),
        # Schemas that would expand to gigabytes.
        ("/v1/completions", {"prompt": "a", "response_format": {"type": "json_object", "schema":
         {"type": "string", "minLength": 10**10}}}, 200),
        ("/v1/completions", {"prompt": "a", "response_format": {"type": "json_object", "schema":
         {"type": "string", "pattern": "^a{9999999999}$"}}}, 200),
    ],
)  # fmt: skip
def test_known_bad_requests_are_answered_or_refused(
    session: SpecSession, path: str, body: Any, code: int
) -> None:
    body = {"max_tokens": 2, "max_output_tokens": 2, "n_predict": 2} | body
    one = ("POST", path, written(body), {})
    found, text = asyncio.run(status(App(session, Settings("m")), one))
    assert found == code, text


def test_a_grammar_that_becomes_too_complex_is_a_400(session: SpecSession) -> None:
    """The error shows only during generation, but it is the client's."""
    body = {"prompt": "x", "max_tokens": 99, "grammar": TOO_COMPLEX}
    one = ("POST", "/v1/completions", written(body), {})
    code, text = asyncio.run(status(App(session, Settings("m")), one))
    assert code == 400
    assert json.loads(text)["error"]["param"] == "grammar"


@pytest.mark.parametrize(("header", "value"), [("Host", "["), ("Origin", "http://[")])
def test_bad_host_and_origin_headers_are_refused(
    session: SpecSession, header: str, value: str
) -> None:
    one = ("GET", "/health", b"", {header: value})
    assert asyncio.run(status(App(session, Settings("m")), one))[0] == 400


def test_n_predict_0_gives_no_text(session: SpecSession) -> None:
    body = {"input_prefix": "a", "input_suffix": "b", "n_predict": 0, "stream": True}
    one = ("POST", "/infill", written(body), {})
    code, text = asyncio.run(status(App(session, Settings("m")), one))
    assert code == 200
    assert {json.loads(line[6:])["content"] for line in text.split("\n\n") if line} == {""}
