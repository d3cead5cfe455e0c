"""The server through the official client: completions, models, metrics."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import openai
import pytest
from prompts import PROMPTS
from scripted_model import write_scripted_model
from serving import Server, serve
from session_options import EXACT, FIXED
from specllama import SpecSession
from specllama._core import Source

PROMPT = PROMPTS["module"]
SVG = "http://www.w3.org/2000/svg"  # the namespace's name; it is never loaded


def complete(server: Server, **options: Any) -> Any:
    return server.openai().completions.create(model="test", **({"prompt": PROMPT} | options))


def test_a_completion_equals_the_sessions_text(server: Server) -> None:
    answer = complete(server, max_tokens=30, temperature=0)
    expected = server.session.generate(PROMPT, max_tokens=30)
    assert (answer.object, answer.model) == ("text_completion", "test")
    assert answer.id.startswith("cmpl-")
    (choice,) = answer.choices
    assert (choice.text, choice.finish_reason) == (expected.text, "length")
    usage = answer.usage
    assert usage.prompt_tokens == expected.stats.prompt_tokens
    assert usage.completion_tokens == 30
    assert usage.total_tokens == usage.prompt_tokens + 30
    assert usage.drafted_tokens == expected.stats.drafted
    assert usage.accepted_tokens == expected.stats.accepted > 0
    assert usage.completion_tokens_details.accepted_prediction_tokens == usage.accepted_tokens


def test_a_streamed_completion_equals_the_whole_one(server: Server) -> None:
    options: dict[str, Any] = {"max_tokens": 30, "temperature": 0, "logprobs": 2}
    whole = complete(server, **options)
    events = list(complete(server, stream=True, stream_options={"include_usage": True}, **options))
    assert {event.id for event in events} == {events[0].id}
    *parts, last, usage = events
    assert usage.choices == []
    assert usage.usage.completion_tokens == 30
    assert (last.choices[0].finish_reason, last.usage) == ("length", None)
    choices = [event.choices[0] for event in parts]
    assert "".join(choice.text for choice in choices) == whole.choices[0].text
    tokens = [token for choice in choices for token in choice.logprobs.tokens]
    assert tokens == whole.choices[0].logprobs.tokens
    offsets = [offset for choice in choices for offset in choice.logprobs.text_offset]
    assert offsets == whole.choices[0].logprobs.text_offset
    assert sum(getattr(choice, "from_draft", False) for choice in choices) > 0
    # Usage is not sent unless it is requested.
    assert {event.usage for event in complete(server, stream=True, max_tokens=3)} == {None}


def test_completions_sample_16_tokens_by_default(server: Server) -> None:
    # Two may be equal, if both end at once. Without sampling all would be equal.
    texts = {complete(server, prompt="def f(").choices[0].text for _ in range(8)}
    assert len(texts) > 2
    seeded = complete(server, prompt="def f(", seed=5)
    expected = server.session.generate("def f(", max_tokens=16, temperature=1.0, seed=5)
    assert seeded.choices[0].text == expected.text
    assert seeded.usage.completion_tokens == 16
    # llama-server's name for max_tokens.
    few = complete(server, prompt="def f(", seed=5, extra_body={"n_predict": 5})
    assert few.usage.completion_tokens == 5


def test_sampling_fields_reach_the_session(server: Server) -> None:
    options: dict[str, Any] = {
        "max_tokens": 40, "temperature": 0.9, "top_p": 0.95, "seed": 2**64 - 2,
        "presence_penalty": 0.1, "frequency_penalty": 0.2,
    }  # fmt: skip
    extra = {"top_k": 50, "min_p": 0.01, "repeat_penalty": 1.1}
    unbiased = server.session.generate(PROMPT, **options, **extra).tokens
    bias = {unbiased[20]: -100.0}
    expected = server.session.generate(PROMPT, logit_bias=bias, **options, **extra).text
    options |= {"seed": -2, "logit_bias": {str(token): -100 for token in bias}}
    found = complete(server, extra_body=extra, **options).choices[0].text
    assert found == expected
    options["logit_bias"] = {}
    assert complete(server, extra_body=extra, **options).choices[0].text != expected


def test_stop_ends_a_completion(server: Server) -> None:
    text = complete(server, max_tokens=40, temperature=0).choices[0].text
    stop = text[10:14]
    for stops in (stop, ["never comes", stop]):
        choice = complete(server, max_tokens=40, temperature=0, stop=stops).choices[0]
        assert (choice.text, choice.finish_reason) == (text[: text.index(stop)], "stop")


def test_prompts_can_be_texts_tokens_and_lists(server: Server) -> None:
    ids = server.session.tokenize(PROMPT)
    options: dict[str, Any] = {"max_tokens": 10, "temperature": 0}
    one = complete(server, **options).choices[0].text
    other = complete(server, prompt="import os", **options).choices[0].text
    for prompt, texts in (
        (ids, [one]),
        ([PROMPT], [one]),
        ([PROMPT, "import os"], [one, other]),
        ([ids, server.session.tokenize("import os")], [one, other]),
    ):
        answer = complete(server, prompt=prompt, **options)
        assert [choice.text for choice in answer.choices] == texts
        assert [choice.index for choice in answer.choices] == list(range(len(texts)))


def test_n_and_several_prompts_give_several_choices(server: Server) -> None:
    options: dict[str, Any] = {"prompt": ["import os", PROMPT], "n": 2, "seed": 3, "max_tokens": 8}
    answer = complete(server, **options)
    expected = [
        one.text
        for prompt in options["prompt"]
        for one in server.session.generate(
            prompt, n=2, seed=3, max_tokens=8, temperature=1.0
        ).choices
    ]
    assert [choice.text for choice in answer.choices] == expected
    assert len(set(expected)) == 4
    # A prompt counts once for all its choices.
    n_prompt = sum(len(server.session.tokenize(prompt)) for prompt in options["prompt"])
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (n_prompt, 32)
    texts = [""] * 4
    for event in complete(server, stream=True, **options):
        for choice in event.choices:
            texts[choice.index] += choice.text
    assert texts == expected


def test_completions_have_logprobs(server: Server) -> None:
    answer = complete(server, max_tokens=12, temperature=0, logprobs=3)
    expected = server.session.generate(PROMPT, max_tokens=12, logprobs=3).logprobs
    found = answer.choices[0].logprobs
    assert "".join(found.tokens) == answer.choices[0].text
    assert found.token_logprobs == pytest.approx([one.logprob for one in expected])
    for top, one in zip(found.top_logprobs, expected, strict=True):
        texts = {server.session.token_text(token): logprob for token, logprob in one.top}
        assert top == pytest.approx(texts)
    lengths = [len(token) for token in found.tokens]
    assert found.text_offset == [sum(lengths[:i]) for i in range(12)]
    banned = complete(server, max_tokens=2, logprobs=0, logit_bias={"199": -100})
    assert json.dumps(banned.to_dict(), allow_nan=False)


def test_logprobs_name_parts_of_a_character_by_bytes(tmp_path: Path) -> None:
    pieces: list[str | bytes] = ["a", b"\xf0", b"\x9f", b"\x98", b"\x80", "!"]
    write_scripted_model(tmp_path / "parts.gguf", pieces, any_text=True)
    with SpecSession(tmp_path / "parts.gguf", **EXACT, **FIXED) as session, serve(session) as one:
        choice = complete(
            one, prompt=[1], logprobs=20, temperature=0, max_tokens=len(pieces)
        ).choices[0]
        events = complete(
            one, prompt=[1], logprobs=0, temperature=0, max_tokens=len(pieces), stream=True
        )
        offsets = [
            offset
            for event in events
            if event.choices[0].logprobs
            for offset in event.choices[0].logprobs.text_offset
        ]
    assert choice.text == "a\U0001f600!"
    found = choice.logprobs
    parts = [r"bytes:\xf0", r"bytes:\x9f", r"bytes:\x98", r"bytes:\x80"]
    assert found.tokens == ["a", *parts, "!"]
    assert found.text_offset == offsets == [0, 1, 1, 1, 1, 2]
    assert [len(top) for top in found.top_logprobs] == [20] * 6


@pytest.mark.parametrize("prompt", [PROMPT, "a <|end|> b", "x = 'some' , y ?"])
def test_echo_repeats_the_prompt(server: Server, prompt: str) -> None:
    options: dict[str, Any] = {"max_tokens": 5, "temperature": 0}
    plain = complete(server, prompt=prompt, **options).choices[0].text
    options |= {"prompt": prompt, "echo": True}
    text = complete(server, **options).choices[0].text
    assert text == prompt + plain
    assert text == "".join(
        event.choices[0].text for event in complete(server, stream=True, **options)
    )


def test_top_k_minus_one_means_off(server: Server) -> None:
    def text(**extra: Any) -> str:
        return str(complete(server, max_tokens=20, seed=3, extra_body=extra).choices[0].text)

    assert text(top_k=-1) == text(top_k=0) == text() != text(top_k=1)


def test_grammar_and_response_format_constrain_completions(server: Server) -> None:
    def text(**extra: Any) -> str:
        answer = complete(server, max_tokens=200, seed=1, extra_body=extra)
        assert answer.choices[0].finish_reason == "stop"
        return str(answer.choices[0].text)

    assert text(grammar='root ::= "yes" | "no"') in ("yes", "no")
    plain = complete(server, max_tokens=3, temperature=0)
    free = complete(server, max_tokens=3, temperature=0, extra_body={"grammar": ""})
    assert free.choices[0].text == plain.choices[0].text
    schema = {"type": "object", "properties": {"age": {"type": "integer", "maximum": 99}}}
    schema |= {"required": ["age"], "additionalProperties": False}
    wanted = {"type": "json_schema", "json_schema": {"name": "person", "schema": schema}}
    assert list(json.loads(text(response_format=wanted))) == ["age"]
    answer = complete(
        server, max_tokens=60, seed=1, extra_body={"response_format": {"type": "json_object"}}
    )
    assert answer.choices[0].text.startswith("{")
    assert text(response_format={"type": "json_object", "schema": schema}).startswith("{")
    null = {"type": "json_schema", "json_schema": {"name": "null", "schema": {"const": None}}}
    assert text(response_format=null).strip() == "null"


def test_unknown_and_null_fields_are_ignored(server: Server) -> None:
    extra = {
        "user": "me",
        "no_such_field": [1],
        "top_k": None,
        "stop": None,
        "n": None,
        "best_of": 1,
    }
    answer = complete(server, max_tokens=3, temperature=0, extra_body=extra)
    assert answer.choices[0].text == complete(server, max_tokens=3, temperature=0).choices[0].text


def test_models_are_listed(server: Server) -> None:
    (model,) = server.openai().models.list()
    assert model.id == "test"
    assert server.openai().models.retrieve("test").owned_by == "specllama"
    with pytest.raises(openai.NotFoundError):
        server.openai().models.retrieve("another")


def test_health_reports_the_load(server: Server) -> None:
    assert server.get("/health").json() == {"status": "ok", "running": 0, "waiting": 0}


def test_metrics_count_requests_and_tokens(server: Server) -> None:
    def metrics() -> dict[str, float]:
        lines = server.get("/metrics").text.splitlines()
        pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
        return {name.removeprefix("specllama_"): float(value) for name, value in pairs}

    before = metrics()
    usage = complete(server, max_tokens=30, temperature=0).usage
    after = metrics()

    def more(name: str) -> float:
        return after[name] - before[name]

    assert more('requests_total{outcome="length"}') == 1
    assert more("generated_tokens_total") == 30
    assert more("prompt_tokens_total") == usage.prompt_tokens
    for name, expected in (("drafted", usage.drafted_tokens), ("accepted", usage.accepted_tokens)):
        names = [f'{name}_tokens_total{{drafter="{who.name}"}}' for who in Source]
        assert sum(more(one) for one in names) == expected
    assert after["tokens_per_second"] > 0
    assert (after["requests_running"], after["requests_waiting"]) == (0, 0)


def test_the_page_and_its_files_are_served_with_a_policy(server: Server) -> None:
    answer = server.get("/")
    assert answer.headers["content-type"].startswith("text/html")
    paths, seen = ["/"], set()
    while paths:
        path = paths.pop()
        answer = server.get(path)
        assert answer.status_code == 200, path
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "style-src 'self'; script-src 'self';" in policy
        assert "require-trusted-types-for 'script'" in policy
        if "/vendor/" not in path:  # it loads nothing from other hosts
            assert set(re.findall(r"https?://[\w./]+", answer.text)) <= {SVG}, path
        seen.add(path)
        named = re.findall(r'(?:src|href)="(/[^"]*)"', answer.text)
        named += [
            "/page/" + name for name in re.findall(r'(?:from|import) "\./([^"]*)"', answer.text)
        ]
        paths += set(named) - seen
    assert {"/page/base.css", "/page/trace.css", "/page/page.js", "/page/trace.js"} < seen
    assert sum("/vendor/" in path for path in seen) == 3
    for path in ("/page/", "/page/page.py", "/page/..%2fpage.py", "/page/../page.py"):
        assert server.get(path).status_code == 404


@pytest.mark.parametrize("stream", [False, True])
def test_trace_html_returns_the_trace(server: Server, stream: bool) -> None:
    options: dict[str, Any] = {"max_tokens": 30, "temperature": 0, "stream": stream}
    answer = complete(server, extra_body={"trace_html": True}, **options)
    last = list(answer)[-1].choices[0] if stream else answer.choices[0]
    expected = server.session.generate(PROMPT, max_tokens=30, trace=True).trace
    assert expected is not None
    # Everything but the times is equal.
    marks = [
        re.findall(r'class="(\w+)" title', html) for html in (last.trace_html, expected.to_html())
    ]
    assert marks[0] == marks[1] != []
    answer = complete(server, **options)
    last = list(answer)[-1].choices[0] if stream else answer.choices[0]
    assert not hasattr(last, "trace_html")


def test_trace_html_must_be_a_boolean(server: Server) -> None:
    with pytest.raises(openai.BadRequestError, match="trace_html"):
        complete(server, extra_body={"trace_html": "yes"})
