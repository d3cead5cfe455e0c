"""A target on an SGLang server gives the tokens of a local session.

The server is a stand-in for SGLang's /generate, based on its source and on answers of version
0.5.23.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from prompts import MODULE, PROMPTS
from session_options import EXACT
from sglang_stand_in import Fault, StandIn, cut, stand_in
from specllama import ArgumentError, Drafter, Generation, ModelError, SpecSession
from specllama.errors import QueueFullError, RemoteError
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL
from starlette.responses import JSONResponse

SAMPLED: dict[str, Any] = {"temperature": 0.8, "top_k": 20, "seed": 7}
SOME = ("module", "function", "english", "emoji", "cjk", "one token")


@pytest.fixture(scope="module")
def local() -> Iterator[SpecSession]:
    with SpecSession(draft=None, **EXACT) as session:
        yield session


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[StandIn, str]]:
    with stand_in(BUNDLED_MODEL) as (answers, url):
        yield answers, url


@pytest.fixture
def answers(server: tuple[StandIn, str]) -> StandIn:
    server[0].faults.clear()
    return server[0]


@pytest.fixture
def remote(server: tuple[StandIn, str]) -> Iterator[Callable[..., SpecSession]]:
    """Opens sessions at the stand-in, and closes them after the test."""
    opened: list[SpecSession] = []

    def open_one(draft: Any = "ngram", **options: Any) -> SpecSession:
        given = {"tokenizer": BUNDLED_MODEL, "n_threads": 1} | options
        opened.append(SpecSession(draft=draft, target=server[1], **given))
        return opened[-1]

    yield open_one
    for session in opened:
        session.close()


def assert_same(there: Generation, here: Generation) -> None:
    assert there.tokens == here.tokens
    assert there.text == here.text
    assert there.finish_reason == here.finish_reason
    assert there.stop_string == here.stop_string


@pytest.mark.parametrize("draft", [None, "ngram", BUNDLED_DRAFT], ids=["none", "ngram", "model"])
@pytest.mark.parametrize(
    "options",
    [{}, SAMPLED, SAMPLED | {"top_p": 0.9, "min_p": 0.02}, SAMPLED | {"top_k": 64, "seed": 3}],
    ids=["greedy", "top_k", "top_p and min_p", "largest top_k"],
)
def test_sglang_gives_the_tokens_of_a_local_session(
    remote: Callable[..., SpecSession], local: SpecSession, draft: Any, options: dict[str, Any]
) -> None:
    session = remote(draft, spec_length=4)
    accepted = 0
    for name in SOME:
        there = session.generate(PROMPTS[name], max_tokens=60, **options)
        assert_same(there, local.generate(PROMPTS[name], max_tokens=60, **options))
        accepted += there.stats.accepted
        assert there.stats.rounds + there.stats.accepted >= len(there.tokens)
    assert (accepted > 0) == (draft is not None)


def test_sglang_computes_only_new_tokens(
    remote: Callable[..., SpecSession], answers: StandIn, local: SpecSession
) -> None:
    session = remote(spec_length=4)
    before = len(answers.asked)
    there = session.generate(MODULE, max_tokens=60)
    n_prompt = len(session.tokenize(MODULE))
    asked, computed = answers.asked[before:], answers.computed[before:]
    assert len(asked) == there.stats.rounds < len(there.tokens)
    for body, n_computed, (n_drafted, _) in list(
        zip(asked, computed, there.stats.by_round, strict=True)
    )[1:]:
        assert n_computed == 1 + n_drafted
        assert body["logprob_start_len"] == len(body["input_ids"]) - 1 - n_drafted >= n_prompt
    assert there.stats.drafted > there.stats.accepted > 0
    assert_same(there, local.generate(MODULE, max_tokens=60))


def test_the_draft_models_tokenizer_is_used_for_sglang(
    remote: Callable[..., SpecSession], local: SpecSession
) -> None:
    session = remote(BUNDLED_DRAFT, tokenizer=None)
    assert session.n_vocab == local.n_vocab
    assert "stand-in at http://127.0.0.1:" in session.model_description
    assert session.has_chat_template == local.has_chat_template
    for prompt in PROMPTS.values():
        tokens = local.tokenize(prompt)
        assert session.tokenize(prompt) == tokens
        assert session.detokenize(tokens, special=True) == local.detokenize(tokens, special=True)


def test_sglang_streams_and_stops_like_a_local_session(
    remote: Callable[..., SpecSession], local: SpecSession
) -> None:
    session = remote()
    whole = local.generate(MODULE, max_tokens=80)
    stop = whole.text[40:47]
    for options in ({"stop": [stop]}, {"stop": [stop, "\n\n"]}, {"max_tokens": 0}):
        given: dict[str, Any] = {"max_tokens": 80} | options
        a, b = (list(one.stream(MODULE, **given)) for one in (session, local))
        assert "".join(chunk.text for chunk in a) == "".join(chunk.text for chunk in b)
        assert [chunk.token for chunk in a] == [chunk.token for chunk in b]
        assert a[-1].finish_reason == b[-1].finish_reason
    stopped = session.generate(MODULE, max_tokens=80, stop=stop)
    assert (stopped.finish_reason, stopped.stop_string) == ("stop", stop)
    nearly_all = (session.tokenize(MODULE) * 40)[: session.n_ctx - 3]
    there = session.generate(nearly_all, max_tokens=3)
    assert_same(there, local.generate(nearly_all, max_tokens=3))


def test_sglang_texts_end_and_have_whole_characters(scripted: Callable[..., Path]) -> None:
    rocket = "\N{ROCKET}".encode()
    pieces = ["Take ", "off", rocket[:1], rocket[1:2], rocket[2:3], rocket[3:], " now", b"\xc3"]
    model = scripted(pieces)
    with stand_in(model, n_ctx=256) as (_, url):
        for draft in (None, "ngram"):
            with (
                SpecSession(model, draft=None, **EXACT) as local,
                SpecSession(draft=draft, target=url, tokenizer=model) as session,
            ):
                for prompt in ([1], [1, 3, 4]):
                    there = session.generate(prompt, max_tokens=40)
                    assert_same(there, local.generate(prompt, max_tokens=40))
                assert "\N{ROCKET} now\N{REPLACEMENT CHARACTER}" in there.text
                assert there.finish_reason == "stop"


def test_sglang_logprobs_match_a_local_session(
    remote: Callable[..., SpecSession], local: SpecSession
) -> None:
    options: dict[str, Any] = SAMPLED | {"max_tokens": 30, "logprobs": 25}
    there, here = (one.generate(MODULE, **options) for one in (remote(), local))
    assert there.tokens == here.tokens
    for a, b in zip(there.logprobs, here.logprobs, strict=True):
        assert a.token == b.token
        assert a.logprob == pytest.approx(b.logprob, abs=1e-4)
        assert [token for token, _ in a.top] == [token for token, _ in b.top]


def test_several_requests_to_sglang_get_their_own_tokens(
    remote: Callable[..., SpecSession], local: SpecSession
) -> None:
    prompts = [PROMPTS[name] for name in SOME]
    session = remote(n_seq=3)
    for there, prompt in zip(session.generate(prompts, max_tokens=20), prompts, strict=True):
        assert_same(there, local.generate(prompt, max_tokens=20))


def test_a_broken_connection_to_sglang_repeats_the_round(
    remote: Callable[..., SpecSession], answers: StandIn, local: SpecSession
) -> None:
    session = remote()
    stream = session.stream(MODULE, max_tokens=40, **SAMPLED)
    for _ in stream:
        answers.faults[:] = [cut]
    answers.faults.clear()
    assert_same(stream.result(), local.generate(MODULE, max_tokens=40, **SAMPLED))


def answering(status: int, body: Any) -> Fault:
    return lambda _: JSONResponse(body, status)


META: dict[str, Any] = {"finish_reason": {"type": "length"}, "input_top_logprobs": [None]}


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        (answering(400, {"error": {"message": "No such thing."}}), ArgumentError, "No such thing"),
        (answering(400, {"object": "error", "message": "Too long."}), ArgumentError, "Too long"),
        (answering(500, {"error": {"message": "Out."}}), RemoteError, "status 500: Out"),
        (answering(409, {"message": "Conflict."}), RemoteError, "Conflict"),
        (answering(503, {}), QueueFullError, "busy"),
        (answering(401, {"error": "Unauthorized"}), RemoteError, "target_key"),
        (answering(200, []), RemoteError, "no JSON"),
        (answering(200, {"text": ""}), RemoteError, "meta_info"),
        (
            answering(200, {"meta_info": META}),
            RemoteError,
            '"meta_info.output_top_logprobs" is missing',
        ),
        (
            answering(200, {"meta_info": META | {"output_top_logprobs": []}}),
            RemoteError,
            "is a list of 0, not a list of one row",
        ),
        (
            answering(200, {"meta_info": META | {"output_top_logprobs": [[[0.0, 99999, None]]]}}),
            RemoteError,
            "the vocabulary here has only",
        ),
        (
            answering(200, {"meta_info": {"finish_reason": {"type": "abort", "message": "Why."}}}),
            RemoteError,
            "aborted the request: Why",
        ),
    ],
)
def test_errors_of_sglang_leave_the_session_usable(
    remote: Callable[..., SpecSession],
    answers: StandIn,
    local: SpecSession,
    fault: Fault,
    error: type[Exception],
    said: str,
) -> None:
    session = remote()
    answers.faults[:] = [fault]
    with pytest.raises(error, match=re.escape(said)):
        session.generate("def f(", max_tokens=8)
    assert_same(session.generate("def f(", max_tokens=8), local.generate("def f(", max_tokens=8))


class Reckless(Drafter):
    """Drafts an id beyond the server's vocabulary."""

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        return [32]


def test_token_ids_beyond_the_sglang_vocabulary_are_not_sent(scripted: Callable[..., Path]) -> None:
    """One such id would crash the server. The stand-in checks at its end that it still runs."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words: list[str | bytes] = [f"word{one} " for one in letters]
    known, padded = scripted([*words, "x ", "y "]), scripted([*words, "x ", "y ", "z ", *letters])
    with stand_in(known, n_ctx=64) as (answers, url):
        for draft in (None, "ngram", padded, Reckless()):
            with SpecSession(target=url, draft=draft, tokenizer=padded, spec_length=4) as session:
                found = session.generate([1, 27], max_tokens=9, reference=[1, 30, 31, 32, 33])
                assert found.tokens == [28, 29, 30]
                with pytest.raises(ArgumentError, match=r"prompt has token 32, but http.*0 to 31"):
                    session.generate([1, 32], max_tokens=2)
                session.generate([1], max_tokens=3, temperature=1.0, top_k=64, logprobs=64)
        assert {body.get("top_logprobs_num", 0) for body in answers.asked} == {0, 1, 32}
        assert max(max(body["input_ids"]) for body in answers.asked) < 32


def test_a_vanished_sglang_server_raises_remote_error(bundled_model: Path) -> None:
    with stand_in(bundled_model) as (_, url):
        session = SpecSession(target=url, tokenizer=bundled_model)
        stream = session.stream("def f(", max_tokens=50)
        next(stream)
    with session, pytest.raises(RemoteError, match="Cannot reach"):
        list(stream)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"temperature": 0.8}, "top_k from 1 to 64, not 0"),
        ({"temperature": 0.8, "top_k": 65}, "not 65"),
        ({"temperature": -1.0, "top_k": 5}, "temperature must be"),
        ({"logprobs": 65}, "at most 64 tokens"),
        ({"logprobs": 1, "processed_logprobs": True}, "processed"),
        ({"grammar": 'root ::= "a"'}, "grammar"),
        ({"logit_bias": {5: 1.0}}, "logit_bias"),
        ({"presence_penalty": 0.5}, "penalties"),
        ({"acceptance": "rejection"}, "rejection"),
    ],
)
def test_options_that_sglang_does_not_support_are_refused(
    remote: Callable[..., SpecSession], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ArgumentError, match=said):
        remote().generate("x", max_tokens=5, **options)


def test_tokenizers_and_drafts_that_do_not_fit_sglang_are_refused(
    remote: Callable[..., SpecSession], smollm2: Path, scripted: Callable[..., Path]
) -> None:
    with pytest.raises(ModelError, match=r"Token \d+ is '.*' at http://.*, but '.*' in .*SmolLM2"):
        remote(tokenizer=smollm2)
    with pytest.raises(ModelError, match=r"Token 3 is '.*' at http://.*, but 'never' in .*gguf"):
        remote(tokenizer=scripted(["never", "more"]))
    with pytest.raises(ModelError, match="another vocabulary"):
        remote(smollm2)
    with pytest.raises(ArgumentError, match="as draft or tokenizer"):
        remote(tokenizer=None)
    with pytest.raises(ArgumentError, match="tokenizer is for"):
        SpecSession(BUNDLED_MODEL, tokenizer=BUNDLED_MODEL)
    with pytest.raises(RemoteError, match="Cannot reach"):
        SpecSession(target="sglang+http://127.0.0.1:9", tokenizer=BUNDLED_MODEL)


def test_the_context_length_is_the_sglang_servers(
    remote: Callable[..., SpecSession], answers: StandIn, local: SpecSession
) -> None:
    assert remote().n_ctx == local.n_ctx - 6
    answers.tells_length = False
    assert remote().n_ctx == local.n_ctx - 6
    answers.tells_length = True
