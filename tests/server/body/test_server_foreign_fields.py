"""Fields and paths of clients that were written for other servers."""

from __future__ import annotations

import gzip
import json
from typing import Any

import openai
import pytest
from prompts import ENDLESS, PROMPTS
from serving import Server, serve

PROMPT = PROMPTS["module"]


def test_fields_are_accepted_in_the_formats_of_other_servers(server: Server) -> None:
    plain = {"prompt": PROMPT, "max_tokens": 30, "temperature": 0}

    def text(**more: Any) -> str:
        answer = server.post("/v1/completions", plain | more)
        assert answer.is_success, answer.text
        return str(answer.json()["choices"][0]["text"])

    assert text(stop="") == text(stop=["", ""]) == text()
    banned = server.session.generate(PROMPT, max_tokens=1).tokens[0]
    other = text(logit_bias={str(banned): -100})
    assert text(logit_bias=[[banned, -100]]) == other != text()
    schema = {"type": "object", "properties": {"b": {"enum": [1, 2]}}, "required": ["b"]}
    described = {"name": "x", "schema": schema}
    by_format = text(response_format={"type": "json_schema", "json_schema": described})
    assert list(json.loads(by_format)) == ["b"]
    assert text(response_format={"type": "json_schema", "schema": schema}) == by_format
    assert text(json_schema=schema) == by_format
    json.loads(text(json_schema={}, max_tokens=300))


@pytest.mark.parametrize("most", [32_000, 10**12])
def test_max_tokens_beyond_the_context_is_reduced(server: Server, most: int) -> None:
    """Clients send their model's maximum."""
    prompt = server.session.tokenize(PROMPT * 20)[:2040]
    answer = server.post("/v1/completions", {"prompt": prompt, "max_tokens": most, **ENDLESS})
    (choice,) = answer.json()["choices"]
    assert choice["finish_reason"] == "length"
    assert answer.json()["usage"]["completion_tokens"] == 8


def test_paths_without_v1_are_served(server: Server) -> None:
    """For clients whose base URL ends in the port."""
    client = openai.OpenAI(base_url=server.url, api_key="none")
    assert client.models.list().data[0].id == "test"
    assert client.models.retrieve("test").id == "test"
    assert client.completions.create(model="", prompt="x", max_tokens=1, **ENDLESS).choices


def test_answers_have_timings_and_usage(server: Server) -> None:
    body = {"prompt": PROMPT, "max_tokens": 12, "temperature": 0, **ENDLESS}
    whole = server.post("/v1/completions", body).json()
    timings, usage = whole["timings"], whole["usage"]
    assert timings["predicted_n"] == usage["completion_tokens"] == 12
    assert timings["cache_n"] + timings["prompt_n"] == usage["prompt_tokens"]
    assert (timings["draft_n"], timings["draft_n_accepted"]) == (
        usage["drafted_tokens"],
        usage["accepted_tokens"],
    )
    assert timings["predicted_ms"] > 0
    anew = server.post("/v1/completions", body | {"cache_prompt": False}).json()["timings"]
    assert (anew["cache_n"], anew["prompt_n"]) == (0, usage["prompt_tokens"])
    assert "timings" not in server.post("/v1/completions", {**body, "n": 2}).json()
    options = {"stream": True, "stream_options": {"include_usage": True}}
    lines = server.post("/v1/completions", body | options).text.split("\n\n")
    assert json.loads(lines[-3].removeprefix("data: "))["timings"]["predicted_n"] == 12


def test_top_p_0_gives_the_likeliest_token(server: Server) -> None:
    body = {"prompt": PROMPT, "max_tokens": 12}
    greedy = server.post("/v1/completions", {**body, "temperature": 0}).json()
    drawn = server.post("/v1/completions", {**body, "temperature": 1, "top_p": 0}).json()
    assert drawn["choices"] == greedy["choices"]


def test_repetition_penalty_is_repeat_penalty(server: Server) -> None:
    body = {"prompt": PROMPT, "max_tokens": 30, "temperature": 0}
    plain, ours, theirs = (
        server.post("/v1/completions", body | more).json()["choices"]
        for more in ({}, {"repeat_penalty": 1.8}, {"repetition_penalty": 1.8})
    )
    assert plain != ours == theirs


def test_sampling_defaults_of_the_server_apply(server: Server) -> None:
    body = {"prompt": PROMPT, "max_tokens": 12}
    greedy = server.post("/v1/completions", {**body, "temperature": 0}).json()["choices"]
    with serve(server.session, sampling={"temperature": 1.0, "top_k": 1}) as other:
        assert other.post("/v1/completions", body).json()["choices"] == greedy
        hot = {**body, "temperature": 5, "top_k": 0, "seed": 1}
        assert other.post("/v1/completions", hot).json()["choices"] != greedy


def test_compressed_bodies_are_refused(server: Server) -> None:
    packed = gzip.compress(b'{"prompt": "x", "max_tokens": 1}')
    refused = server.post("/v1/completions", packed, headers={"Content-Encoding": "gzip"})
    assert refused.status_code == 415
    assert "is compressed" in refused.json()["error"]["message"]
    body, same = {"prompt": "x", "max_tokens": 1}, {"Content-Encoding": "Identity"}
    assert server.post("/v1/completions", body, headers=same).is_success
