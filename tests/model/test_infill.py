"""Infilling: prompts in the format of llama.cpp's server, what they leave out, and the API."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from serving import Server, serve
from session_options import EXACT, FIXED
from specllama import ArgumentError, ModelError, SpecSession
from specllama.model.infill import FimTokens, InfillPrompts
from specllama.session import BUNDLED_MODEL

Open = Callable[..., SpecSession]
PRE, SUF, MID, REP, SEP = 300, 301, 302, 303, 304
BEFORE, BEHIND = "def add(a, b):\n    return ", "\n\nprint(add(1, 2))\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled model, with some tokens marked as infill tokens."""
    path = tmp_path_factory.mktemp("infill") / "infill.gguf"
    names = dict(zip(("pre", "suf", "mid", "rep", "sep"), range(PRE, SEP + 1), strict=True))
    options = [
        word for name, one in names.items()
        for word in ("--special-token-by-id", f"fim_{name}", str(one))
    ]  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "gguf.scripts.gguf_new_metadata", *options, BUNDLED_MODEL, path],
        check=True,
        capture_output=True,
    )
    return path


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Server]:
    with SpecSession(model, **EXACT, **FIXED) as session, serve(session) as running:
        yield running


def tokens(session: SpecSession, text: str) -> list[int]:
    return session.tokenize(text, add_special=False, parse_special=False)


def test_infill_prompts_follow_the_models_format(model: Path, open_session: Open) -> None:
    session = open_session(model)
    assert session.has_infill
    bos = session.tokenize("")
    before, behind = tokens(session, BEFORE), tokens(session, BEHIND)
    assert session.render_infill(BEFORE, BEHIND).tokens == [
        *bos, PRE, *before, SUF, *behind, MID,
    ]  # fmt: skip
    files = {"a.py": "x = 1\n", "b.py": "y = 2\n"}
    found = session.render_infill(BEFORE, BEHIND, files.items())
    assert found.tokens == [
        *bos,
        REP, *tokens(session, "myproject\n"),
        SEP, *tokens(session, "a.py\n"), *tokens(session, "x = 1\n"),
        SEP, *tokens(session, "b.py\n"), *tokens(session, "y = 2\n"),
        SEP, *tokens(session, "filename\n"),
        PRE, *before, SUF, *behind, MID,
    ]  # fmt: skip
    assert found.left_out == []


def test_long_infill_prompts_keep_the_text_near_the_gap() -> None:
    """With a vocabulary of characters."""
    prompts = InfillPrompts(FimTokens(-1, -2, -3, -1, -1)._replace(prefix=1, suffix=2, middle=3),
                            [], lambda text: [ord(one) for one in text])  # fmt: skip
    for n_before, n_behind, most in ((30, 30, 63), (30, 30, 43), (90, 5, 43), (5, 90, 43)):
        before, behind = "ab" * (n_before // 2), "yz" * (n_behind // 2)
        infill = prompts.make(before, behind, [], most)
        assert len(infill.tokens) <= most
        text = "".join(map(chr, infill.tokens))
        near, behind_found = text[1 : text.index("\2")], text[text.index("\2") + 1 : -1]
        assert before.endswith(near)
        assert behind.startswith(behind_found)
        assert len(infill.tokens) + len(infill.left_out) == len(before) + len(behind) + 3
        assert len(infill.tokens) == most or not infill.left_out
    files = [("a", "A" * 50), ("b", "B" * 50)]
    infill = prompts.make("x", "y", files, 90)
    text = "".join(map(chr, infill.tokens))
    assert ("B" * 50 in text, "A" in text) == (True, False)
    assert "A" * 50 in "".join(map(chr, infill.left_out))


def test_infill_generates_from_the_rendered_prompt(model: Path, open_session: Open) -> None:
    session = open_session(model)
    expected = session.generate(session.render_infill(BEFORE, BEHIND).tokens, max_tokens=12)
    assert session.infill(BEFORE, BEHIND, max_tokens=12).tokens == expected.tokens
    chunks = session.stream_infill(BEFORE, BEHIND, max_tokens=12)
    assert "".join(chunk.text for chunk in chunks) == expected.text
    later = asyncio.run(session.ainfill(BEFORE, BEHIND, files={"a.py": "x"}, max_tokens=12))
    assert later.stats.prompt_tokens > expected.stats.prompt_tokens
    assert session.submit_infill(BEFORE, BEHIND, max_tokens=12).result().text == expected.text

    async def chunk_by_chunk() -> str:
        chunks = session.astream_infill(BEFORE, BEHIND, max_tokens=12)
        return "".join([chunk.text async for chunk in chunks])

    assert asyncio.run(chunk_by_chunk()) == expected.text
    two = session.infill(BEFORE, BEHIND, n=2, max_tokens=12).choices
    two += asyncio.run(session.ainfill(BEFORE, BEHIND, n=2, max_tokens=12)).choices
    assert [one.tokens for one in two] == [expected.tokens] * 4
    asked: Any = session
    with pytest.raises(TypeError, match=r"n_beams is an option of session\.beam_search"):
        asked.infill(BEFORE, BEHIND, n_beams=2)
    calls: list[Callable[..., Any]] = [
        asked.infill,
        asked.stream_infill,
        lambda *args, **options: asyncio.run(asked.ainfill(*args, **options)),
    ]
    for call in calls:
        with pytest.raises(
            ArgumentError, match="files must be a dict of texts by their names, not"
        ):
            call(BEFORE, BEHIND, files=[("a.py", "x")])


def test_text_left_out_of_an_infill_prompt_is_drafted_from(model: Path, open_session: Open) -> None:
    session = open_session(model, n_ctx=256)
    text = session.generate("def g(a, b):\n", max_tokens=60).text
    plain = session.infill(BEFORE, BEHIND, max_tokens=40)
    # A file with the right continuation, too long for the prompt.
    file = plain.text + "\n# " + "much more " * 200 + text
    helped = session.infill(BEFORE, BEHIND, files={"a.py": file}, max_tokens=40)
    assert helped.tokens == plain.tokens
    assert helped.stats.accepted > plain.stats.accepted


def test_a_model_without_infill_tokens_is_refused(open_session: Open) -> None:
    session = open_session()
    assert not session.has_infill
    with pytest.raises(ModelError, match="no tokens for filling in the middle"):
        session.infill(BEFORE, BEHIND)
    with serve(session) as server:
        with pytest.raises(openai.BadRequestError, match="leave suffix out") as caught:
            server.openai().completions.create(model="m", prompt=BEFORE, suffix=BEHIND)
        assert caught.value.param == "suffix"
        answer = server.post("/infill", {"input_prefix": "a", "input_suffix": "b"})
        assert answer.status_code == 400
        assert "no tokens for filling" in answer.json()["error"]["message"]


def test_completions_with_a_suffix_use_infill(server: Server) -> None:
    options: dict[str, Any] = {"model": "m", "max_tokens": 12, "temperature": 0, "suffix": BEHIND}
    answer = server.openai().completions.create(prompt=BEFORE, **options)
    expected = server.session.infill(BEFORE, BEHIND, max_tokens=12)
    assert answer.choices[0].text == expected.text
    for bad, param in (({"prompt": [1, 2]}, "prompt"), ({"prompt": "a", "echo": True}, "echo")):
        with pytest.raises(openai.BadRequestError) as caught:
            server.openai().completions.create(**options, **bad)
        assert caught.value.param == param


def test_infill_endpoint_answers_as_llama_server(server: Server) -> None:
    body: dict[str, Any] = {
        "input_prefix": BEFORE[:-5], "prompt": BEFORE[-5:], "input_suffix": BEHIND,
        "input_extra": [{"filename": "a.py", "text": "x = 1\n"}, {"text": "y"}],
        "n_predict": 12, "temperature": 0, "samplers": ["top_k", "infill"], "cache_prompt": True,
        "t_max_predict_ms": 1000,
    }  # fmt: skip
    expected = server.session.generate(
        server.session.render_infill(BEFORE, BEHIND, [("a.py", "x = 1\n"), ("tmp", "y")]).tokens,
        max_tokens=12,
    )
    answer = server.post("/infill", body).json()
    assert answer["content"] == expected.text
    assert (answer["stop"], answer["stop_type"]) == (True, "limit")
    assert answer["tokens_predicted"] == answer["timings"]["predicted_n"] == 12
    assert answer["tokens_evaluated"] == expected.stats.prompt_tokens
    read = server.post("/infill", body | {"n_predict": 0, "input_prefix": "another"}).json()
    assert (read["content"], read["stop"]) == ("", True)
    streamed = server.post("/infill", body | {"stream": True}).text
    assert streamed.count('"stop":false') == 12
    assert streamed.count('"stop":true') == 1
    for field, value in (
        ("input_prefix", 5), ("input_suffix", None), ("input_extra", "x"),
        ("input_extra", [{"filename": "a"}]), ("prompt", []), ("n_predict", -2),
    ):  # fmt: skip
        refused = server.post("/infill", body | {field: value})
        assert refused.status_code == 400
        assert field in refused.json()["error"]["param"]


def test_infill_endpoint_respects_max_prompt(server: Server) -> None:
    body = {"input_prefix": "x = 1\n" * 200, "input_suffix": BEHIND, "n_predict": 2}
    with serve(server.session, max_prompt=40) as limited:
        answer = limited.post("/infill", body)
    assert answer.json()["tokens_evaluated"] <= 40


def test_infill_endpoint_bounds_n_predict_by_the_context(server: Server) -> None:
    """No part of the prompt is dropped for a huge n_predict."""
    body = {"input_prefix": BEFORE, "input_suffix": BEHIND, "temperature": 0}
    few = server.post("/infill", body | {"n_predict": 1}).json()
    many = server.post("/infill", body | {"n_predict": 10**6}).json()
    assert many["tokens_evaluated"] == few["tokens_evaluated"]
    assert many["content"].startswith(few["content"])
    assert many["tokens_evaluated"] + many["tokens_predicted"] <= server.session.n_ctx


def test_an_extra_file_is_included_in_an_infill_prompt_if_it_fits() -> None:
    """With a vocabulary of characters. The names of the repository and the file count, too."""
    prompts = InfillPrompts(FimTokens(1, 2, 3, 4, 5), [6], lambda text: [ord(one) for one in text])
    n_all = len(prompts.make("x", "y", [("a", "A" * 20)], 1000).tokens)
    for most in range(4, n_all + 5):
        infill = prompts.make("x", "y", [("a", "A" * 20)], most)
        assert len(infill.tokens) <= most
        assert (ord("A") in infill.tokens) == (most >= n_all)
        assert (ord("A") in infill.left_out) == (most < n_all)


def test_infill_endpoint_drafts_from_text_left_out(server: Server) -> None:
    body = {"input_prefix": BEFORE, "input_suffix": BEHIND, "n_predict": 40, "temperature": 0}
    with serve(server.session, max_prompt=60) as limited:
        plain = limited.post("/infill", body).json()
        # A file with the right continuation, too long for the prompt.
        text = plain["content"] + "\n# " + "much more " * 200
        helped = limited.post("/infill", body | {"input_extra": [{"text": text}]}).json()
    assert (helped["content"], helped["tokens_evaluated"]) == (
        plain["content"], plain["tokens_evaluated"],
    )  # fmt: skip
    assert helped["timings"]["draft_n_accepted"] > plain["timings"]["draft_n_accepted"]
