"""Fields of llama-server's requests for speculation, samplers and reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from prompts import PROMPTS
from serving import Server, refused, serve
from session_options import EXACT, FIXED
from specllama import SpecSession
from specllama.session import BUNDLED_DRAFT

PROMPT = PROMPTS["module"]
SAID = "{% for m in messages %}{{ m.content }}{% endfor %}"
PLAIN: dict[str, Any] = {"temperature": 0, "max_tokens": 40}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with trees, for which every round asks all drafters."""
    options: dict[str, Any] = {"n_seq": 2, "spec_length": 4, "spec_tree": 2, **EXACT}
    with (
        SpecSession(draft=BUNDLED_DRAFT, chat_template=SAID, **options) as session,
        serve(session) as running,
    ):
        yield running


def completion(server: Server, **options: Any) -> Any:
    answer = server.post("/v1/completions", {"prompt": PROMPT} | PLAIN | options)
    assert answer.is_success, answer.text
    return answer.json()


def events(server: Server, path: str, **options: Any) -> list[Any]:
    answer = server.post(path, {"prompt": PROMPT} | PLAIN | options | {"stream": True})
    assert answer.is_success, answer.text
    lines = [one.removeprefix("data: ") for one in answer.text.strip().split("\n\n")]
    return [json.loads(one) for one in lines if one != "[DONE]"]


@pytest.mark.parametrize("plain", [{"speculative.n_max": 0}, {"speculative.type": "none"}], ids=str)
def test_a_request_can_be_decoded_without_drafts(server: Server, plain: dict[str, Any]) -> None:
    expected = completion(server)
    assert expected["usage"]["drafted_tokens"] > 0
    found = completion(server, **plain)
    assert found["choices"][0]["text"] == expected["choices"][0]["text"]
    assert found["usage"]["drafted_tokens"] == 0
    native = server.post("/completion", {"prompt": PROMPT, "n_predict": 9, **plain}).json()
    assert native["timings"]["draft_n"] == 0


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/completions"]
)
def test_all_apis_choose_drafts(server: Server, path: str) -> None:
    asked = {"/v1/responses": "input", "/v1/completions": "prompt"}.get(path, "messages")
    prompt = [{"role": "user", "content": PROMPT}] if asked == "messages" else PROMPT
    most = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
    body = {asked: prompt, most: 40, "temperature": 0}
    for plain in ({}, {"speculative.n_max": 0}, {"speculative.type": "none"}):
        usage = server.post(path, body | plain).json()["usage"]
        assert (usage["drafted_tokens"] == 0) == bool(plain)
    usage = server.post(path, body | {"cache_prompt": False}).json()["usage"]
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or usage
    assert details.get("cached_tokens", details.get("cache_read_input_tokens")) == 0


def test_n_max_bounds_the_drafts_of_a_request(server: Server) -> None:
    session = server.session
    found = session.submit(PROMPT, max_tokens=60, spec_length=2).result()
    assert 0 < len(found.stats.drafted_by_position) <= 2
    assert found.text == session.submit(PROMPT, max_tokens=60).result().text
    assert completion(server, **{"speculative.n_max": 10**6})["usage"]["drafted_tokens"] > 0


@pytest.mark.parametrize(
    ("given", "drafters"),
    [
        ("draft-simple", {"model"}), ("model", {"model"}),
        ("ngram-mod", {"ngram", "match"}), ("ngram-simple,ngram-cache", {"ngram", "match"}),
    ],
)  # fmt: skip
def test_type_chooses_the_drafters(server: Server, given: str, drafters: set[str]) -> None:
    kind = "model" if "model" in drafters else "ngram"
    session = server.session
    stats = session.submit(PROMPT, max_tokens=60, spec_type=kind).result().stats
    used = {name for name, (drafted, _) in stats.by_drafter.items() if drafted > 0}
    assert used
    assert used <= drafters, used
    text = completion(server)["choices"][0]["text"]
    assert completion(server, **{"speculative.type": given})["choices"][0]["text"] == text


def test_a_type_that_the_session_lacks_is_refused() -> None:
    with SpecSession(draft="ngram", **EXACT, **FIXED) as session, serve(session) as running:
        answer = running.post(
            "/v1/completions", {"prompt": PROMPT, "speculative.type": "draft-mtp"}
        )
        assert "no draft model" in refused(answer, 400, "speculative.type")["message"]
        assert completion(running, **{"speculative.type": "ngram-mod"})["choices"]


def test_the_openai_client_chooses_by_extra_body(server: Server) -> None:
    client: openai.OpenAI = server.openai()
    for n_max, cached in ((0, True), (4, False)):
        answer = client.completions.create(
            model="any",
            prompt=PROMPT,
            max_tokens=40,
            temperature=0,
            extra_body={"speculative.n_max": n_max, "cache_prompt": cached},
        )
        assert answer.usage is not None
        assert answer.usage.model_extra is not None
        assert (answer.usage.model_extra["drafted_tokens"] > 0) == (n_max > 0)
        assert answer.usage.prompt_tokens_details is not None
        assert (answer.usage.prompt_tokens_details.cached_tokens == 0) == (not cached)


@pytest.mark.parametrize(
    "wrong",
    [
        {"speculative.n_max": -1}, {"speculative.n_max": "x"}, {"speculative.type": "frob"},
        {"speculative.type": 5}, {"n_cache_reuse": 256}, {"n_cache_reuse": -1},
        {"samplers": 5}, {"samplers": [1]}, {"timings_per_token": 1},
        {"samplers": ["x"] * 100}, {"return_progress": "x"}, {"cache_prompt": 0},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_values_are_refused_by_all_apis(server: Server, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    for path in ("/v1/completions", "/completion"):
        body = {"prompt": PROMPT, "max_tokens": 1, "stream": True, **wrong}
        refused(server.post(path, body), 400, name)


def test_n_cache_reuse_of_0_is_accepted(server: Server) -> None:
    assert completion(server, n_cache_reuse=0)["choices"]


def test_samplers_left_out_are_off(server: Server) -> None:
    drawn = {"temperature": 1.5, "seed": 5, "top_k": 1, "min_p": 0.9, "max_tokens": 20}
    session = server.session
    by_top_k = completion(server, **drawn, samplers=["top_k"])["choices"][0]["text"]
    assert by_top_k == session.submit(PROMPT, max_tokens=20).result().text
    hot = session.submit(PROMPT, max_tokens=20, temperature=1.5, seed=5).result().text
    assert completion(server, **drawn, samplers=["temperature"])["choices"][0]["text"] == hot
    assert completion(server, **drawn, samplers="t")["choices"][0]["text"] == hot
    unscaled = session.submit(PROMPT, max_tokens=20, temperature=1.0, seed=5).result().text
    assert completion(server, **drawn, samplers=[])["choices"][0]["text"] == unscaled


def test_an_order_of_samplers_that_matters_is_refused(server: Server) -> None:
    body = {"prompt": PROMPT, "max_tokens": 2, "temperature": 0.7, "top_p": 0.9}
    for order in (["temperature", "top_p"], "tp", ["top-p", "nucleus"]):
        error = refused(server.post("/v1/completions", body | {"samplers": order}), 400, "samplers")
        assert '"top_p"' in error["message"]
    # Steps without an effect may have any order, and unknown names are ignored.
    order = ["min_p", "top_p", "tfs_z", "temp", "top_k", "dry", "xtc"]
    assert completion(server, samplers=order, top_p=0.9, temperature=0.7)["choices"]


@pytest.mark.parametrize("path", ["/v1/completions", "/completion"])
def test_timings_are_sent_with_every_part(server: Server, path: str) -> None:
    parts = [one for one in events(server, path, timings_per_token=True) if "choices" not in one
             or one["choices"]]  # fmt: skip
    n = [one["timings"]["predicted_n"] for one in parts]
    assert n == sorted(n)
    assert n[-1] > 0
    assert all("timings" not in one for one in events(server, path)[:-1])


@pytest.mark.parametrize("path", ["/v1/completions", "/completion"])
def test_the_progress_of_the_prompt_is_sent_before_the_answer(server: Server, path: str) -> None:
    prompt = server.session.tokenize(PROMPT * 8)[:1500]
    more = {"prompt": prompt, "return_progress": True, "cache_prompt": False, "max_tokens": 3}
    parts = events(server, path, **more)
    first = next(i for i, one in enumerate(parts) if "prompt_progress" not in one)
    assert all("prompt_progress" not in one for one in parts[first:])
    progress = [one["prompt_progress"] for one in parts[:first]]
    processed = [one["processed"] for one in progress]
    assert len(processed) > 2
    assert processed == sorted(processed)
    assert (processed[0], processed[-1]) == (0, len(prompt))
    assert {(one["total"], one["cache"]) for one in progress} == {(len(prompt), 0)}
    assert all(one["time_ms"] >= 0 for one in progress)
    again = [one["prompt_progress"] for one in events(server, path, **more, n=1)[:1]]
    assert again[0]["cache"] == 0


def test_the_openai_client_reads_progress_and_timings(server: Server) -> None:
    chunks = list(
        server.openai().completions.create(
            model="any", prompt=PROMPT, max_tokens=5, temperature=0, stream=True,
            extra_body={"return_progress": True, "timings_per_token": True},
        )
    )  # fmt: skip
    assert chunks[0].model_extra is not None
    assert chunks[0].model_extra["prompt_progress"]["total"] > 0
    assert chunks[-1].model_extra is not None
    assert chunks[-1].model_extra["timings"]["predicted_n"] > 0


def test_metrics_count_drafts_by_position(server: Server) -> None:
    completion(server)
    lines = server.get("/metrics").text.splitlines()

    def at(name: str) -> dict[str, int]:
        begin = f"specllama_{name}_tokens_by_position_total"
        found = (one.split() for one in lines if one.startswith(f"{begin}{{"))
        return {key.split('"')[1]: int(value) for key, value in found}

    drafted, accepted = at("drafted"), at("accepted")
    assert drafted["0"] >= drafted[max(drafted, key=int)] > 0
    assert 0 < accepted["0"] <= drafted["0"]
