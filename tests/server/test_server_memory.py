"""The server's memory of earlier requests: shared by all slots, separate for each API key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prompts import PROMPTS
from serving import Server, serve
from session_options import EXACT
from specllama import SpecSession
from specllama.__main__ import main

PROMPT = PROMPTS["english"]


@pytest.fixture
def server() -> Iterator[Server]:
    options: dict[str, Any] = {**EXACT, "spec_length": 4, "n_seq": 2, "memory": 1}
    with (
        SpecSession(None, "ngram", **options) as session,
        serve(session, api_keys=("a", "b")) as running,
    ):
        yield running


def n_rounds(server: Server, key: str, path: str = "/v1/completions", **fields: Any) -> int:
    """Return the number of target decodes of an answer."""
    body = {"prompt": PROMPT, "max_tokens": 60, "temperature": 0} | fields
    answer = server.post(path, body, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200, answer.text
    timings = answer.json()["timings"]
    n: int = timings["predicted_rounds_n"]
    return n


def test_a_request_drafts_only_from_requests_with_the_same_key(server: Server) -> None:
    alone = n_rounds(server, "a")
    assert n_rounds(server, "b") == alone
    again = n_rounds(server, "a")
    assert again < 0.9 * alone
    assert n_rounds(server, "b") == again


def test_all_slots_draft_from_the_same_memory(server: Server) -> None:
    alone = n_rounds(server, "a")
    body = {"prompt": [PROMPT, PROMPT], "max_tokens": 60, "temperature": 0}
    answer = server.post("/v1/completions", body, headers={"Authorization": "Bearer a"}).json()
    assert 120 - answer["usage"]["accepted_tokens"] < 2 * 0.9 * alone


def test_store_false_keeps_a_request_out_of_the_memory(server: Server) -> None:
    alone = n_rounds(server, "a", store=False)
    assert n_rounds(server, "a", store=False) == alone
    assert n_rounds(server, "a", store=True) == alone
    assert n_rounds(server, "a", store=False) == alone
    assert n_rounds(server, "a", store=None) < 0.9 * alone
    refused = server.post(
        "/v1/completions",
        {"prompt": PROMPT, "store": "no"},
        headers={"Authorization": "Bearer a"},
    )
    assert refused.status_code == 400
    assert "store" in refused.json()["error"]["message"]


def test_all_endpoints_share_the_memory(server: Server) -> None:
    alone = n_rounds(server, "a", "/completion", n_predict=60)
    assert n_rounds(server, "a", "/v1/completions") < 0.9 * alone


def test_a_memory_file_of_several_keys_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--memory-file", str(tmp_path / "m"), "--api-key", "a,b"]) == 2
    assert "for one API key, but there are 2" in capsys.readouterr().err
