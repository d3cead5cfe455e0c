"""Sessions: prompts, limits, the KV memory between calls, closing."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import run_script
from prompts import PROMPTS
from scripted_model import BOS, FIRST
from specllama import ArgumentError, ClosedError, DecodeError, Generation, SpecSession

Open = Callable[..., SpecSession]
PROMPT = PROMPTS["module"]


@pytest.mark.here_and_served
def test_a_generation_has_its_tokens_text_and_finish_reason(open_session: Open) -> None:
    session = open_session()
    generation = session.generate(PROMPT, max_tokens=50)
    assert len(generation.tokens) == 50
    assert generation.finish_reason == "length"
    assert generation.text == session.detokenize(generation.tokens)
    assert str(generation) == generation.text


def test_prompts_are_texts_or_token_ids(open_session: Open) -> None:
    session = open_session()
    tokens = session.tokenize(PROMPT)
    expected = session.generate(PROMPT, max_tokens=20).tokens
    arrays = [np.array(tokens, kind) for kind in ("int32", "int64", "uint16", ">i4")]
    every_other = np.repeat(arrays[0], 2)[::2]
    for prompt in (tokens, tuple(tokens), iter(tokens), *arrays, every_other):
        assert session.generate(prompt, max_tokens=20).tokens == expected
    replayed = session.replay(arrays[0], np.array(expected), reference=arrays[1])
    assert replayed.tokens == expected
    assert session.detokenize(arrays[0]) == PROMPT
    both = session.generate([arrays[0], arrays[1]], max_tokens=20)
    assert [one.tokens for one in both] == [expected, expected]


def test_a_prompt_array_can_change_after_it_is_submitted(open_session: Open) -> None:
    session = open_session(n_seq=2)
    tokens = np.array(session.tokenize(PROMPT), np.int32)
    expected = session.generate(PROMPT, max_tokens=20).tokens
    handle = session.submit(tokens, max_tokens=20)
    tokens[:] = 0
    assert handle.result().tokens == expected


@pytest.mark.here_and_served
def test_echo_puts_the_prompt_before_the_text(open_session: Open) -> None:
    session = open_session()
    plain = session.generate(PROMPT, max_tokens=10)
    echoed = session.generate(PROMPT, max_tokens=10, echo=True)
    assert echoed.text == PROMPT + plain.text
    assert echoed.tokens == plain.tokens
    tokens = session.tokenize(PROMPT)
    assert session.generate(tokens, max_tokens=10, echo=True).text == PROMPT + plain.text


@pytest.mark.here_and_served
def test_tokenize_and_detokenize_are_inverse(open_session: Open) -> None:
    session = open_session()
    for text in PROMPTS.values():
        assert session.detokenize(session.tokenize(text)) == text
    assert session.tokenize("")[0] == session.tokenize("x")[0]  # BOS
    assert session.tokenize("", add_special=False) == []
    assert session.tokenize("<|end|>", add_special=False) == [0]
    assert len(session.tokenize("<|end|>", add_special=False, parse_special=False)) > 1
    assert session.detokenize([0]) == ""
    assert session.detokenize([0], special=True) == "<|end|>"


@pytest.mark.here_and_served
def test_max_tokens_0_gives_nothing_and_none_fills_the_context(open_session: Open) -> None:
    session = open_session(n_ctx=64)
    nothing = session.generate("x = 1", max_tokens=0)
    assert (nothing.text, nothing.tokens, nothing.finish_reason) == ("", [], "length")
    whole = session.generate("x = 1\n", max_tokens=None)
    assert whole.finish_reason == "length"
    assert whole.stats.prompt_tokens + len(whole.tokens) == 64


@pytest.mark.here_and_served
@pytest.mark.parametrize("n_left", [1, 2, 3, 5])
def test_generation_ends_when_the_context_is_full(open_session: Open, n_left: int) -> None:
    tokens = open_session().tokenize(PROMPTS["counting"])
    expected = open_session(draft=None).generate(tokens, max_tokens=n_left).tokens
    session = open_session(n_ctx=len(tokens) + n_left, spec_length=8)
    generation = session.generate(tokens, max_tokens=None)
    assert generation.tokens == expected
    assert session.generate(tokens).tokens == expected  # the default limit would be 256
    assert generation.finish_reason == "length"


def test_the_common_prefix_of_the_next_prompt_is_reused(open_session: Open) -> None:
    session = open_session()
    tokens = session.tokenize(PROMPT)
    first = session.generate(tokens, max_tokens=30)
    assert first.stats.reused_tokens == 0
    again = session.generate(tokens, max_tokens=30)
    assert again.stats.reused_tokens == len(tokens) - 1
    assert again.tokens == first.tokens
    # A conversation: prompt, answer, and a new message.
    longer = tokens + first.tokens + session.tokenize("\n\nimport", add_special=False)
    third = session.generate(longer, max_tokens=30)
    assert third.stats.reused_tokens >= len(tokens) + len(first.tokens) - 1
    assert third.tokens == open_session().generate(longer, max_tokens=30).tokens
    # An edit in the middle.
    edited = [*tokens[:40], tokens[0], *tokens[41:]]
    fourth = session.generate(edited, max_tokens=30)
    assert fourth.stats.reused_tokens == 40
    assert fourth.tokens == open_session().generate(edited, max_tokens=30).tokens


@pytest.mark.here_and_served
def test_ngrams_are_not_shared_between_requests(open_session: Open) -> None:
    prompt = PROMPTS["english"]
    alone = open_session().generate(prompt, max_tokens=60)
    session = open_session()
    session.generate(PROMPT, max_tokens=60)
    after_another = session.generate(prompt, max_tokens=60)
    assert after_another.stats.by_round == alone.stats.by_round


@pytest.mark.here_and_served
def test_the_end_token_is_not_in_the_result(
    scripted: Callable[..., Path], open_session: Open
) -> None:
    session = open_session(scripted(["a", "b", "c"]), kv_type="f16")
    generation = session.generate([BOS])
    assert generation.text == "abc"
    assert generation.tokens == [FIRST, FIRST + 1, FIRST + 2]
    assert generation.finish_reason == "stop"


@pytest.mark.here_and_served
def test_closed_sessions_raise_closed_error(open_session: Open) -> None:
    session = open_session()
    stream = session.stream(PROMPT)
    next(stream)
    session.close()
    session.close()
    for call in (
        lambda: session.generate("x"),
        lambda: session.stream("x"),
        lambda: session.tokenize("x"),
        lambda: session.detokenize([1]),
        lambda: session.n_ctx,
        lambda: list(stream),
    ):
        with pytest.raises(ClosedError, match="closed"):
            call()
    assert repr(session) == "<SpecSession, closed>"


def test_the_context_manager_closes_the_session() -> None:
    with SpecSession(n_threads=1, n_gpu_layers=0) as session:
        assert repr(session) == "<SpecSession llama 5.9M Q8_0, n_ctx=2048>"
    with pytest.raises(ClosedError):
        session.generate("x")


def test_nan_logits_raise_decode_error(scripted: Callable[..., Path], open_session: Open) -> None:
    session = open_session(scripted(["a", "b"], output_scale=float("nan")), kv_type="f16")
    with pytest.raises(DecodeError, match="NaN"):
        session.generate([BOS])
    assert session.last is not None
    assert session.last.stats.generated_tokens == len(session.last.tokens) == 0


def test_progress_reports_loading_and_prefill(open_session: Open) -> None:
    seen: list[tuple[str, float]] = []
    session = open_session(progress=lambda stage, done: seen.append((stage, done)), n_batch=32)
    assert seen[0][0] == "load"
    assert seen[-1] == ("load", 1.0)
    seen.clear()
    session.generate(PROMPT * 3, max_tokens=5)
    assert {stage for stage, _ in seen} == {"prefill"}
    fractions = [done for _, done in seen]
    assert fractions == sorted(fractions)
    assert len(fractions) > 5
    assert fractions[-1] == 1.0


def test_loading_can_be_interrupted(open_session: Open) -> None:
    def stop(stage: str, done: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_session(progress=stop)


def test_bad_prompts_are_refused(open_session: Open) -> None:
    session = open_session(n_ctx=32)
    for prompt, message in (
        ("", "empty"),
        ((), "empty"),
        ("word " * 100, r"tokens, which leaves no room in a context of 32"),
        ([1, 4096], "Token 4096 in the prompt is out of range; the model has 4096 tokens"),
        ([1, -1], "Token -1"),
        ([1, 2**40], "prompt\\[1\\]"),
        ([1, 2.5], "prompt\\[1\\] must be a whole number"),
        (b"bytes", "str or token ids"),
        (None, "str or token ids"),
        (5, "str or token ids"),
        (np.array(5), "one dimension, not 0"),
        (np.array([[1, 2]]), "one dimension, not 2"),
        (np.array([1, 2**40]), "prompt\\[1\\] must be from"),
        (np.array([1, 2**64 - 1], np.uint64), "prompt\\[1\\] must be from"),
        (np.array([1, 2.5]), "prompt\\[0\\] must be a whole number"),
        ("\ud800", "surrogate"),
    ):
        with pytest.raises(ArgumentError, match=message):
            session.generate(prompt)  # type: ignore[arg-type]
    for several in (["a", "b"], [[5], [6]], [np.array([5])], ["a"]):
        for way in (session.stream, session.submit):
            with pytest.raises(ArgumentError, match="only generate takes several"):
                way(several)  # type: ignore[arg-type, operator]
    assert session.generate("x", max_tokens=3).tokens  # the session continues


def test_bad_paths_and_tokens_are_refused(open_session: Open) -> None:
    session = open_session()
    for path, message in ((5, "must be a path"), (None, "must be a path"), ("a\0b", "NUL")):
        with pytest.raises(ArgumentError, match=message):
            session.save_state(path)  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match=message):
            session.load_state(path)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="token must be a whole number"):
        session.token_text("a")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="stop must be a str or several"):
        session.generate("x", stop=b"x")  # type: ignore[call-overload]


def test_async_with_closes_the_session(open_session: Open) -> None:
    async def answer() -> tuple[SpecSession, Generation]:
        async with open_session() as session:
            return session, await session.agenerate("x", max_tokens=2)

    session, generation = asyncio.run(answer())
    assert len(generation.tokens) == 2
    with pytest.raises(ClosedError):
        session.generate("x")


def test_options_of_other_methods_raise_type_error(open_session: Open) -> None:
    session = open_session()
    with pytest.raises(TypeError, match=r"option of session\.beam_search"):
        session.generate("x", length_penalty=1)  # type: ignore[call-overload]
    for options, message in (
        ({"n": 2}, "n is an option of"),
        ({"n_beams": 2}, "of session.beam_search"),
    ):
        with pytest.raises(TypeError, match=message):
            session.stream("x", **options)


def test_session_errors_name_the_wrong_option() -> None:
    with pytest.raises(ArgumentError, match=r"^n_threads must be"):
        SpecSession(n_threads="x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cascade": "off"}, "cascade must be True or False, not 'off'"),
        ({"verifies": 2}, "verifies must be True or False, not 2"),
        ({"verbose": None}, "verbose must be True or False"),
        ({"ngram_draw": np.zeros(3)}, "ngram_draw must be True or False"),
        ({"rpc": np.zeros(3)}, "rpc must be a str"),
        ({"rpc": "a\0b"}, "rpc has a NUL character"),
        ({"device": "a\0b"}, "device has a NUL character"),
        ({"draft": 3}, "draft must be .* not 3"),
        ({"target_timeout": math.nan}, "target_timeout must be"),
        ({"target_key": 3}, "target_key must be a str"),
        ({"progress": lambda: None}, "progress must be a function of a stage and a fraction"),
    ],
)
def test_bad_options_of_a_session_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        SpecSession(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"target_key": "k"}, {"target_key": ""}, {"target_timeout": 5},
        {"tokenizer": "x.gguf"},
    ],
    ids=str,
)  # fmt: skip
def test_target_options_without_a_target_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    message = f"^{name} is for a remote target; give target, or leave it out"
    with pytest.raises(ArgumentError, match=message):
        SpecSession(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop": np.array(3)}, "stop must be a str or several"),
        ({"grammar_triggers": np.array(3)}, "grammar_triggers must be a str or several"),
        ({"acceptance": np.array([1, 2])}, "acceptance must be"),
        ({"max_tokens": "x" * 100_000}, "max_tokens must be a whole number"),
        ({"seed": 10**5000}, "seed must be"),
        ({"logit_bias": {"y" * 100_000: 1.0}}, "a token id of logit_bias"),
    ],
)
def test_errors_quote_long_values_in_part(
    open_session: Open, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        open_session().generate("x", **options)
    assert len(str(caught.value)) < 300


def test_detokenize_refuses_tokens_out_of_range(open_session: Open) -> None:
    with pytest.raises(ArgumentError, match="out of range"):
        open_session().detokenize([5000])


def test_open_sessions_are_closed_at_process_exit() -> None:
    """With a GPU, Metal would abort the process otherwise. Exit functions run in reverse order."""
    script = """if True:
        import atexit, threading
        atexit.register(lambda: print(session))
        from specllama import SpecSession
        session = SpecSession(n_threads=1, n_gpu_layers=0)
        session.itself = session
        waiting = threading.Thread(target=lambda held: held.wait(), args=[threading.Event()])
        waiting.daemon, waiting.session = True, session
        waiting.start()
        session.generate("x", max_tokens=2)
    """
    assert run_script(script) == (0, "<SpecSession, closed>\n", "")
