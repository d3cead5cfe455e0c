"""A target on a server gives the tokens of a local session, with every drafter."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drafters import SometimesRight, Wrong
from meddling import Meddling
from numpy.typing import NDArray
from prompts import PROMPTS
from serving import Server, serve
from session_options import EXACT, EXACT_HERE, FIXED
from specllama import ArgumentError, Drafter, SpecSession
from specllama.session import BUNDLED_DRAFT
from targets import MODULE, Connect, same

N = 40


class Raising(Drafter):
    """Fails every other time."""

    def __init__(self) -> None:
        self.n_asked = 0

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        self.n_asked += 1
        if self.n_asked % 2:
            raise RuntimeError("out of ideas")
        return [5]


class Foreign(Drafter):
    """Proposes invalid tokens, values that are not numbers, and endless drafts."""

    def __init__(self) -> None:
        self.bad: Any = itertools.cycle([[10**6], [-1], ["x"], itertools.count(), 5, [[None]]])

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> Any:
        return next(self.bad)


class Longest(Meddling):
    """Drafts the right tokens, and records the largest `max_tokens`."""

    longest = 0

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        self.longest = max(self.longest, max_tokens)
        return super().propose(sequence, tokens, max_tokens)


DRAFTS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "ngram": lambda: "ngram",
    "auto": lambda: "auto",
    "draft model": lambda: BUNDLED_DRAFT,
    "wrong": Wrong,
    "raising": Raising,
    "foreign": Foreign,
}
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "drawn": {"temperature": 1.0, "seed": 2**64 - 1, "logprobs": 2},
    "few left": {
        "temperature": 1.0,
        "seed": 1,
        "logprobs": 3,
        "processed_logprobs": True,
        "grammar": 'root ::= (("a" | "b") ("x" | "y")){40,}',
    },
}


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("draft", DRAFTS)
def test_a_served_target_gives_the_same_tokens_with_every_drafter(
    connect: Connect, local: SpecSession, draft: str, options: dict[str, Any]
) -> None:
    session = connect(DRAFTS[draft]())
    n_drafted = 0
    for name in ("module", "emoji"):
        expected = local.generate(PROMPTS[name], max_tokens=N, **options)
        found = session.generate(PROMPTS[name], max_tokens=N, **options)
        same(found, expected)
        n_drafted += found.stats.drafted
        assert found.stats.exact is (EXACT_HERE is True)
        if draft in ("raising", "foreign"):
            assert found.stats.drafter_errors > 0
        else:
            assert found.stats.drafter_errors == 0
        assert found.stats.generated_tokens == N
        assert found.stats.prompt_tokens == expected.stats.prompt_tokens
    if draft in ("ngram", "auto", "draft model"):
        assert n_drafted > 0


@pytest.mark.parametrize("draft", ["ngram", BUNDLED_DRAFT], ids=["ngram", "draft model"])
def test_a_served_target_gives_the_same_tokens_with_a_fixed_length(
    connect: Connect, local: SpecSession, draft: Any
) -> None:
    found = connect(draft, spec_length=3).generate(MODULE, max_tokens=N)
    same(found, local.generate(MODULE, max_tokens=N))
    assert max(found.stats.drafted_by_position, default=0) > 0
    assert len(found.stats.drafted_by_position) <= 3


def test_drafts_respect_the_servers_maximum_length(server: Server, local: SpecSession) -> None:
    """The server has a fixed draft length."""
    expected = local.generate(MODULE, max_tokens=N)
    for given in ({}, {"spec_length": 16}):
        drafter = Longest(expected.tokens, {}, n_most=64)
        options: dict[str, Any] = {"draft": drafter, **given}
        with SpecSession(target=server.url, **options) as session:
            assert session._backend.max_draft_length == FIXED["spec_length"]
            same(session.generate(MODULE, max_tokens=N), expected)
        assert drafter.longest == FIXED["spec_length"]


def test_right_drafts_save_rounds(connect: Connect, local: SpecSession) -> None:
    expected = local.generate(MODULE, max_tokens=N)
    drafter = Meddling(expected.tokens, {}, n_most=4)
    found = connect(drafter, spec_length=4).generate(MODULE, max_tokens=N)
    same(found, expected)
    assert found.stats.rounds <= 2 + N // 5
    assert found.stats.by_drafter["other"][1] >= N - found.stats.rounds - 1


def test_a_drafter_that_is_sometimes_right_changes_no_token(
    connect: Connect, local: SpecSession
) -> None:
    expected = local.generate(MODULE, max_tokens=N, temperature=1.0, seed=3)
    drafter = SometimesRight(local.n_vocab)
    drafter.coming = expected.tokens
    found = connect(drafter).generate(MODULE, max_tokens=N, temperature=1.0, seed=3)
    same(found, expected)
    assert 0 < found.stats.accepted < found.stats.drafted


MORE: dict[str, dict[str, Any]] = {
    "stop": {"stop": ["self.size", "offset)\n"], "max_tokens": 80, "logprobs": 0},
    "stop in a token": {"stop": "f.", "max_tokens": 60},
    "stop over rounds": {"stop": "name = name\n        self.offset", "max_tokens": 80},
    "penalties": {"repeat_penalty": 1.3, "frequency_penalty": 0.5, "repeat_last_n": 8},
    "creative": {
        "temperature": 1.0, "seed": 2, "top_n_sigma": 2.0, "typical_p": 0.9, "dry_multiplier": 2.0,
        "dry_sequence_breakers": "s", "xtc_probability": 0.5, "xtc_threshold": 0.05,
    },
    "bias": {"logit_bias": {5: float("-inf"), 300: 4.0}, "temperature": 1.0, "seed": 1},
    "anew": {"cache_prompt": False},
    "endless": {"ignore_eos": True, "temperature": 1.5, "seed": 5, "max_tokens": 100},
    "grammar": {"grammar": 'root ::= ("yes" | "no")+', "temperature": 1.0, "seed": 2},
    "schema": {"json_schema": {"type": "array", "items": {"type": "integer"}}, "seed": 1},
    "no tokens": {"max_tokens": 0},
    "one token": {"max_tokens": 1},
    "echo": {"echo": True},
    "to the end": {"max_tokens": None},
}  # fmt: skip


@pytest.mark.parametrize("options", MORE.values(), ids=MORE)
def test_a_served_target_supports_all_generation_options(
    connect: Connect, local: SpecSession, options: dict[str, Any]
) -> None:
    prompt = PROMPTS["near the limit"] if options.get("max_tokens", N) is None else MODULE
    options = {"max_tokens": N} | options
    expected = local.generate(prompt, **options)
    session = connect("ngram")
    same(session.generate(prompt, **options), expected)
    chunks = list(session.stream(prompt, **options))
    echo = prompt if options.get("echo") else ""
    assert echo + "".join(chunk.text for chunk in chunks) == expected.text
    assert [one.token for one in chunks if one.token is not None] == expected.tokens
    assert not chunks or chunks[-1].finish_reason == expected.finish_reason


def test_several_requests_to_a_served_target_get_their_own_tokens(
    connect: Connect, local: SpecSession
) -> None:
    names = ["module", "json", "csv", "emoji", "function"]
    session = connect("ngram", n_seq=2)
    for draft in ("ngram", BUNDLED_DRAFT):
        session = connect(draft, n_seq=2)
        found = session.generate([PROMPTS[name] for name in names], max_tokens=20)
        for name, one in zip(names, found, strict=True):
            same(one, local.generate(PROMPTS[name], max_tokens=20))
    options: dict[str, Any] = {"max_tokens": 20, "temperature": 1.0, "seed": 7}
    for one, expected in zip(
        session.generate(MODULE, n=3, **options).choices,
        local.generate(MODULE, n=3, **options).choices,
        strict=True,
    ):
        same(one, expected)


def test_more_requests_than_the_servers_slots_finish(connect: Connect, local: SpecSession) -> None:
    """A request that waits for the server's slot must not delay the local rounds of others, which
    would then lose their slots."""
    session = connect("ngram", n_seq=5)
    expected = local.generate(MODULE, max_tokens=20, n=5, temperature=1.0, seed=7).choices
    found = session.generate(MODULE, max_tokens=20, n=5, temperature=1.0, seed=7).choices
    for one, other in zip(found, expected, strict=True):
        same(one, other)


def test_a_served_target_works_in_an_event_loop(connect: Connect, local: SpecSession) -> None:
    session = connect("ngram", n_seq=2)

    async def main() -> None:
        names = ["module", "json", "csv"]
        found = await asyncio.gather(
            *(session.agenerate(PROMPTS[name], max_tokens=20) for name in names)
        )
        for name, one in zip(names, found, strict=True):
            same(one, local.generate(PROMPTS[name], max_tokens=20))
        text = ""
        async for chunk in session.astream(MODULE, max_tokens=20):
            text += chunk.text
        assert text == local.generate(MODULE, max_tokens=20).text

    asyncio.run(main())


def test_chat_and_tokenizer_of_a_served_target_equal_the_models(smollm2: Path) -> None:
    messages = [{"role": "user", "content": "Say hello."}]
    with (
        SpecSession(smollm2, **EXACT, exact=EXACT_HERE, n_ctx=256, verifies=True) as there,
        serve(there) as server,
        SpecSession(target=server.url) as session,
    ):
        same(session.chat(messages, max_tokens=12), there.chat(messages, max_tokens=12))
        text = "Hello, w\N{LATIN SMALL LETTER O WITH DIAERESIS}rld <|im_end|>"
        for options in ({}, {"parse_special": True}, {"add_special": False}):
            tokens = session.tokenize(text, **options)
            assert list(tokens) == list(there.tokenize(text, **options))
            assert session.detokenize(tokens) == there.detokenize(tokens)
        for name in ("n_ctx", "n_vocab", "n_threads", "has_chat_template", "has_infill"):
            assert getattr(session, name) == getattr(there, name), name
        assert session._backend.vocabulary == there._backend.vocabulary
        assert there.model_description in session.model_description


def test_refusals_of_the_server_become_our_exceptions(connect: Connect) -> None:
    session = connect("ngram")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"max_tokens": 5000}, "max_tokens is 5000"),
        ({"grammar": 'root ::= "a'}, "grammar"),
        ({"logit_bias": {10**6: 1.0}}, "logit_bias"),
        ({"stop": ""}, "stop string is empty"),
    ]
    for options, message in wrong:
        with pytest.raises(ArgumentError, match=message):
            session.generate(MODULE, **options)
    for prompt, message in (
        ([10**6], "Token 1000000 .* is out of range"),
        ([-1], "Token -1 .* is out of range"),
        ("x " * 5000, r"The prompt has \d+ tokens"),
        ("", "The prompt is empty"),
    ):
        with pytest.raises(ArgumentError, match=message):
            session.generate(prompt, max_tokens=3)
    assert session.generate(MODULE, max_tokens=3).finish_reason == "length"


def test_functions_that_need_a_local_model_are_refused(connect: Connect) -> None:
    session = connect()
    for call in (
        lambda: session.generate(MODULE, acceptance="rejection"),
        lambda: session.replay(MODULE, "x"),
        lambda: session.beam_search(MODULE, n_beams=2),
        lambda: session.save_state("x"),
    ):
        with pytest.raises(ArgumentError, match="needs the model in this process, but the target"):
            call()


def test_a_call_waits_for_a_cancelled_request(connect: Connect) -> None:
    session = connect(draft="ngram")
    expected = session.generate(MODULE, max_tokens=3).tokens
    for _ in range(10):
        stream = session.stream(MODULE, max_tokens=400)
        next(stream)
        reader = threading.Thread(target=list, args=[stream])
        reader.start()
        stream.cancel()
        assert session.generate(MODULE, max_tokens=3).tokens == expected
        reader.join()
        handle = session.submit(MODULE, max_tokens=400)
        next(iter(handle))
        handle.cancel()
        assert session.generate(MODULE, max_tokens=3).tokens == expected
