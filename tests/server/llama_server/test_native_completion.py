"""/completion, as in llama.cpp's server."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from prompts import ENDLESS, PROMPTS
from serving import Server

PROMPT = PROMPTS["module"]
GREEDY: dict[str, Any] = {"prompt": PROMPT, "temperature": 0, "n_predict": 12}


def complete(server: Server, **options: Any) -> Any:
    answer = server.post("/completion", GREEDY | options)
    assert answer.is_success, answer.text
    return answer.json()


def events(server: Server, **options: Any) -> list[Any]:
    answer = server.post("/completion", GREEDY | options | {"stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = answer.text.strip().split("\n\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_completion_answers_as_llama_server(server: Server) -> None:
    expected = server.session.generate(PROMPT, max_tokens=12)
    answer = complete(server)
    assert (answer["content"], answer["tokens"]) == (expected.text, [])
    assert (answer["stop"], answer["stop_type"], answer["truncated"]) == (True, "limit", False)
    assert answer["tokens_predicted"] == answer["timings"]["predicted_n"] == 12
    assert answer["tokens_evaluated"] == expected.stats.prompt_tokens
    assert "completion_probabilities" not in answer
    assert complete(server, return_tokens=True)["tokens"] == expected.tokens
    word = expected.text[3:6]
    stopped = complete(server, stop=[word])
    assert (stopped["stop_type"], stopped["stopping_word"]) == ("word", word)
    assert stopped["content"] == expected.text[: expected.text.index(word)]
    read = complete(server, n_predict=0)
    assert (read["content"], read["tokens_predicted"], read["stop"]) == ("", 0, True)


def test_completion_streams_as_llama_server(server: Server) -> None:
    expected = server.session.generate(PROMPT, max_tokens=12)
    *parts, last = events(server)
    assert "".join(one["content"] for one in parts) == expected.text
    assert [token for one in parts for token in one["tokens"]] == expected.tokens
    assert not any(one["stop"] for one in parts)
    assert (last["stop"], last["content"], last["tokens_predicted"]) == (True, "", 12)


def test_prompts_can_mix_text_and_tokens(server: Server) -> None:
    whole = complete(server)["content"]
    tokens = server.session.tokenize(PROMPT)
    assert complete(server, prompt=tokens)["content"] == whole
    split = len(server.session.tokenize(PROMPT[:60]))
    rest = server.session.detokenize(tokens[split:])
    if server.session.tokenize(rest, add_special=False) == tokens[split:]:
        mixed = [server.session.detokenize(tokens[1:split]), *tokens[split:]]
        assert complete(server, prompt=mixed)["content"] == whole


def test_completion_defaults_are_llama_servers(server: Server) -> None:
    asked = {"prompt": PROMPT, "seed": 4, "n_predict": 30}
    expected = server.session.generate(
        PROMPT, max_tokens=30, temperature=0.8, top_k=40, top_p=0.95, min_p=0.05, seed=4
    )
    assert server.post("/completion", asked).json()["content"] == expected.text


def test_completion_takes_xtc_and_dry_options(server: Server) -> None:
    options: dict[str, Any] = {
        "temperature": 1.0, "seed": 3, "xtc_probability": 1.0, "xtc_threshold": 0.05,
        "dry_multiplier": 3.0, "dry_sequence_breakers": ["s"], "top_n_sigma": 2.0, "top_k": 0,
        "top_p": 1.0, "min_p": 0.0,
    }  # fmt: skip
    expected = server.session.generate(PROMPT, max_tokens=12, **options, **ENDLESS)
    biases = {str(token): bias for token, bias in ENDLESS["logit_bias"].items()}
    assert complete(server, **options, logit_bias=biases)["content"] == expected.text
    assert expected.text != server.session.generate(PROMPT, max_tokens=12).text


def test_n_probs_gives_probabilities(server: Server) -> None:
    expected = server.session.generate(PROMPT, max_tokens=12, logprobs=3)
    found = complete(server, n_probs=3)["completion_probabilities"]
    assert [one["id"] for one in found] == expected.tokens
    for one, logprobs in zip(found, expected.logprobs, strict=True):
        assert bytes(one["bytes"]) == server.session.token_bytes(one["id"])
        assert one["logprob"] == pytest.approx(logprobs.logprob)
        assert [top["id"] for top in one["top_logprobs"]] == [top for top, _ in logprobs.top]
    assert complete(server, logprobs=3)["completion_probabilities"] == found
    streamed = [one for part in events(server, n_probs=3)[:-1]
                for one in part.get("completion_probabilities", [])]  # fmt: skip
    assert streamed == found
    drawn = {"temperature": 1.0, "seed": 1, "top_k": 2, "n_probs": 5, "post_sampling_probs": True}
    for one in complete(server, **drawn)["completion_probabilities"]:
        likely = [top["prob"] for top in one["top_probs"] if top["prob"] > 0]
        assert len(likely) <= 2
        assert math.isclose(sum(likely), 1, abs_tol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"prompt": None}, {"prompt": 5.5}, {"prompt": True}, {"prompt": [True]}, {"prompt": {}},
        {"prompt": ["a", "b"]}, {"prompt": [-3]}, {"prompt": [10**9]}, {"n_predict": -2},
        {"n_probs": 101}, {"return_tokens": 1}, {"post_sampling_probs": "x"},
    ],
    ids=str,
)  # fmt: skip
def test_bad_completion_requests_name_the_field(server: Server, options: dict[str, Any]) -> None:
    (name,) = options
    answer = server.post("/completion", GREEDY | options)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == name
