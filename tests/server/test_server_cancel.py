"""Answers that a client cancels, and the fields about their speed."""

from __future__ import annotations

import json
from typing import Any

import httpx
from prompts import PROMPTS
from serving import Server, serve
from session_options import EXACT
from specllama import SpecSession

LONG: dict[str, Any] = {
    "prompt": PROMPTS["module"], "max_tokens": 1900, "ignore_eos": True, "stream": True,
    "trace_html": True, "stream_options": {"include_usage": True},
}  # fmt: skip
SETTINGS = {"api_keys": ("key",)}


def test_a_cancelled_answer_keeps_its_text(server: Server) -> None:
    headers = {"Authorization": "Bearer key"}
    events: list[dict[str, Any]] = []
    with httpx.stream(
        "POST", f"{server.url}/v1/completions", json=LONG, headers=headers, timeout=60
    ) as answer:
        for line in answer.iter_lines():
            if not line.startswith("data: {"):
                continue
            events.append(json.loads(line.removeprefix("data: ")))
            if len(events) == 1:
                path = f"/v1/completions/{events[0]['id']}/cancel"
                assert server.post(path, {}).status_code == 401
                assert server.post(path, {}, headers=headers).json()["cancelled"] is True
    *_, last, usage = events
    assert last["choices"][0]["finish_reason"] == "length"
    assert "specllama-trace" in last["choices"][0]["trace_html"]
    assert 0 < usage["usage"]["completion_tokens"] < 1900
    assert server.post(path, {}, headers=headers).status_code == 404


def test_timings_have_the_rounds_and_the_speedup_if_it_was_measured(server: Server) -> None:
    body = {"prompt": PROMPTS["module"], "max_tokens": 40, "temperature": 0}
    fixed = server.post("/v1/completions", body, headers={"X-Api-Key": "key"}).json()["timings"]
    assert 0 < fixed["predicted_rounds_n"] <= 40
    assert "speedup" not in fixed  # a fixed draft length measures nothing
    with SpecSession(**EXACT) as session, serve(session) as planning:
        assert planning.post("/v1/completions", body).json()["timings"]["speedup"] > 0
