"""Beam search: its results against references, and the session afterwards."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import pytest
from drafters import CtrlC
from float_llama import EOS as FLOAT_EOS
from float_llama import make_float_llama, write_float_llama
from numpy.typing import NDArray
from prompts import PROMPTS
from random_model import EOS, WRITERS, write_dense
from reference_beams import beam_search, found
from session_options import EXACT_HERE, Open
from specllama import ArgumentError, SpecSession

PROMPT = "def fibonacci(n):\n    a, b = 0, 1\n"


@pytest.mark.parametrize("n_beams", [1, 2, 4, 8])
def test_beams_match_a_reference_search_over_whole_texts(tmp_path: Path, n_beams: int) -> None:
    """The reference keeps whole texts in lists; its logits come from llama-cpp-python."""
    model = write_dense(tmp_path / "dense.gguf")
    logits_after = logits_of(model)
    n_stopped = 0
    with SpecSession(model, "ngram", flash_attn=True, n_threads=1, spec_length=3) as session:
        for length_penalty, early_stopping in [
            (1.0, False), (1.0, True), (1.0, "never"), (0.0, "never"), (-0.5, False),
            (2.0, "never"), (0.3, True),
        ]:  # fmt: skip
            options: dict[str, Any] = {
                "n_beams": n_beams, "max_tokens": 12,
                "length_penalty": length_penalty, "early_stopping": early_stopping,
            }  # fmt: skip
            for prompt in ([1, 5, 6], [1, 9, 30, 31]):
                expected = beam_search(logits_after, prompt, EOS, **options)
                beams = session.beam_search(prompt, **options)
                assert [beam.tokens for beam in beams] == [tokens for tokens, _ in expected]
                assert [beam.score for beam in beams] == pytest.approx(
                    [score for _, score in expected], abs=1e-4
                )
                n_stopped += sum(beam.finish_reason == "stop" for beam in beams)
                for beam in beams:
                    n = len(beam.tokens) + (beam.finish_reason == "stop")
                    assert beam.logprob == pytest.approx(beam.score * n**length_penalty)
    assert n_stopped > 0 or n_beams < 4


def test_beams_of_the_bundled_model_match_the_reference_search(bundled_model: Path) -> None:
    logits_after = logits_of(bundled_model)
    with SpecSession(draft="ngram", flash_attn=True, n_threads=1, spec_length=4) as session:
        for prompt in (PROMPT, PROMPTS["counting"]):
            tokens = [int(token) for token in session.tokenize(prompt)]
            expected = beam_search(
                logits_after, tokens, session._backend.eos, n_beams=4, max_tokens=16
            )
            beams = session.beam_search(prompt, n_beams=4, max_tokens=16)
            assert [beam.tokens for beam in beams] == [tokens for tokens, _ in expected]
            assert [beam.score for beam in beams] == pytest.approx(
                [score for _, score in expected], abs=1e-4
            )


def logits_of(model: Path) -> Callable[[list[int]], NDArray[np.float32]]:
    llm = llama_cpp.Llama(
        str(model), n_ctx=512, n_gpu_layers=0, n_threads=1, flash_attn=True, verbose=False
    )

    def after(tokens: list[int]) -> NDArray[np.float32]:
        llm.reset()
        llm.eval(tokens)
        row = llm._ctx.get_logits_ith(-1)
        return np.array(np.ctypeslib.as_array(row, (llm.n_vocab(),)))

    return after


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_beams_match_those_of_transformers(tmp_path: Path, seed: int) -> None:
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            print(f"not compared with transformers: {package} is not installed")
            pytest.skip(f"{package} is not installed")
    import torch

    model = make_float_llama(seed)
    path = write_float_llama(model, tmp_path / "float.gguf")
    with SpecSession(
        path, "ngram", kv_type="f32", flash_attn=False, n_threads=1, spec_length=3
    ) as session:
        for n_beams in (2, 4, 8):
            for length_penalty, early_stopping in [
                (1.0, False), (1.0, True), (1.0, "never"), (0.0, False), (-1.0, False), (2.0, True),
            ]:  # fmt: skip
                for prompt in ([1, 5, 6, 7], [1, 20, 21, 20]):
                    theirs = model.generate(
                        torch.tensor([prompt]),
                        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                        do_sample=False,
                        num_beams=n_beams,
                        num_return_sequences=n_beams,
                        max_new_tokens=20,
                        length_penalty=length_penalty,
                        early_stopping=early_stopping,
                        return_dict_in_generate=True,
                        output_scores=True,
                    )
                    beams = session.generate(
                        prompt,
                        n_beams=n_beams,
                        max_tokens=20,
                        length_penalty=length_penalty,
                        early_stopping=early_stopping,
                    )
                    texts = [
                        list(takewhile(lambda token: token != FLOAT_EOS, text[len(prompt) :]))
                        for text in theirs.sequences.tolist()
                    ]
                    assert [beam.tokens for beam in beams] == texts
                    assert [beam.score for beam in beams] == pytest.approx(
                        theirs.sequences_scores.tolist(), abs=1e-4, rel=1e-5
                    )


def test_one_beam_gives_the_greedy_text(open_session: Open) -> None:
    session = open_session()
    (beam,) = session.beam_search(PROMPT, n_beams=1, max_tokens=30)
    assert beam.tokens == session.generate(PROMPT, max_tokens=30).tokens


def test_beams_are_distinct_and_sorted_by_score(open_session: Open) -> None:
    session = open_session()
    beams = session.beam_search(PROMPT, n_beams=4, max_tokens=20)
    assert [beam.score for beam in beams] == sorted((beam.score for beam in beams), reverse=True)
    assert len({tuple(beam.tokens) for beam in beams}) == 4
    for beam in beams:
        assert beam.text == str(beam) == session.detokenize(beam.tokens)
        assert beam.finish_reason == "length"
    stats = beams[0].stats
    assert stats.prompt_tokens == len(session.tokenize(PROMPT))
    assert stats.generated_tokens == 20
    assert len(stats.by_round) == stats.rounds
    two = session.beam_search(PROMPT, n_beams=4, n=2, max_tokens=20, echo=True)
    assert [beam.text for beam in two] == [PROMPT + beam.text for beam in beams[:2]]
    assert two[0].stats.reused_tokens == stats.prompt_tokens - 1


def test_stop_strings_end_a_beam_and_are_cut_off(open_session: Open) -> None:
    """Like an end-of-generation token: it counts as generated, and is cut off the text."""
    session = open_session()
    plain = open_session(draft=None)
    options: dict[str, Any] = {"n_beams": 4, "max_tokens": 40, "stop": ["\n", "= b"]}
    beams = session.beam_search(PROMPT, **options)
    assert found(beams) == found(plain.beam_search(PROMPT, **options))
    assert all("\n" not in beam.text and "= b" not in beam.text for beam in beams)
    assert any(beam.finish_reason == "stop" for beam in beams)
    without = session.beam_search(PROMPT, n_beams=4, max_tokens=40)
    assert any("\n" in beam.text for beam in without)


def test_generation_is_unchanged_after_a_beam_search(open_session: Open) -> None:
    session = open_session()
    expected = session.generate(PROMPT, max_tokens=40).tokens
    beams = session.beam_search(PROMPT, n_beams=8, max_tokens=40)
    for _ in range(2):
        assert session.generate(PROMPT, max_tokens=40).tokens == expected
        again = session.beam_search(PROMPT, n_beams=8, max_tokens=40)
        assert found(again) == found(beams)
    longer = session.beam_search(PROMPT + "    while", n_beams=2, max_tokens=5)
    assert longer[0].stats.reused_tokens > 0


def test_beams_share_the_remaining_context_evenly(open_session: Open) -> None:
    session = open_session(n_ctx=256)
    n_prompt = len(session.tokenize(PROMPT))
    n_room = (256 - n_prompt) // 8
    beams = session.beam_search(PROMPT, n_beams=8, max_tokens=None)
    assert {len(beam.tokens) for beam in beams if beam.finish_reason == "length"} == {n_room}
    plain = open_session(draft=None, n_ctx=256)
    assert found(beams) == found(plain.beam_search(PROMPT, n_beams=8, max_tokens=n_room))
    with pytest.raises(ArgumentError, match=f"room for {n_room} tokens of each of 8 beams"):
        session.beam_search(PROMPT, n_beams=8, max_tokens=n_room + 1)
    with pytest.raises(ArgumentError, match="at least one token"):
        session.beam_search([5] * 250, n_beams=8)


def test_beams_are_the_same_next_to_other_requests(open_session: Open) -> None:
    """Running requests continue afterwards."""
    expected = open_session(draft=None).beam_search(PROMPT, n_beams=4, max_tokens=30)
    for n_seq in (1, 2):
        session = open_session(n_seq=n_seq, exact=EXACT_HERE)
        alone = session.generate("import os\nimport", max_tokens=40).tokens
        stream = session.stream("import os\nimport", max_tokens=40)
        next(stream)
        assert found(session.beam_search(PROMPT, n_beams=4, max_tokens=30)) == found(expected)
        for _ in stream:
            pass
        assert stream.result().tokens == alone
    handles = [session.submit(PROMPT, max_tokens=20) for _ in range(3)]
    assert found(session.beam_search(PROMPT, n_beams=4, max_tokens=30)) == found(expected)
    assert all(len(handle.result().tokens) == 20 for handle in handles)


def test_ctrl_c_ends_a_beam_search_between_two_decodes(open_session: Open) -> None:
    session = open_session(draft=CtrlC(5))
    session.generate(PROMPT, max_tokens=1)
    with pytest.raises(KeyboardInterrupt):
        session.beam_search(PROMPT, n_beams=1, max_tokens=100)
    assert session.last is None  # not the earlier result
    beams = session.beam_search(PROMPT, n_beams=4, max_tokens=20)
    assert found(beams) == found(
        open_session(draft=None).beam_search(PROMPT, n_beams=4, max_tokens=20)
    )


@pytest.mark.parametrize("kind", ["recurrent", "hybrid", "delta net"])
def test_recurrent_models_refuse_several_beams(tmp_path: Path, kind: str) -> None:
    model = WRITERS[kind](tmp_path / "model.gguf")
    with SpecSession(model, n_threads=1) as session:
        with pytest.raises(ArgumentError, match="Beam search is not supported for recurrent"):
            session.beam_search([1, 5, 6], n_beams=2)
        assert session.generate([1, 5, 6], max_tokens=3).tokens


def test_options_without_effect_are_accepted_with_beams(open_session: Open) -> None:
    session = open_session()
    plain: dict[str, Any] = {"temperature": 0, "top_k": -1, "top_p": 1.0, "logit_bias": {}}
    beams = session.beam_search(PROMPT, n_beams=2, max_tokens=8)
    assert found(session.beam_search(PROMPT, n_beams=2, max_tokens=8, **plain)) == found(beams)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_beams": 0}, "n_beams must be from 1 to 64, not 0"),
        ({"n_beams": 65}, "n_beams must be from 1 to 64"),
        ({"n_beams": 2.5}, "n_beams must be a whole number"),
        ({"n_beams": 2, "n": 3}, "n must be from 1 to 2, not 3"),
        ({"n_beams": 2, "temperature": 0.5}, "temperature is not supported by beam_search"),
        ({"n_beams": 2, "grammar": 'root ::= "a"'}, "grammar is not supported by beam_search"),
        ({"n_beams": 2, "json_schema": {}}, "json_schema is not supported by beam_search"),
        ({"n_beams": 2, "logprobs": 1}, "logprobs is not supported by beam_search"),
        ({"n_beams": 2, "logit_bias": {5: 1}}, "logit_bias is not supported by beam_search"),
        ({"n_beams": 2, "logprobs": 0}, "logprobs is not supported by beam_search"),
        ({"n_beams": 2, "logit_bias": 5}, "logit_bias must map token ids to numbers"),
        ({"n_beams": 2, "trace": True}, "trace is not supported by beam_search"),
        ({"n_beams": 2, "length_penalty": "1"}, "length_penalty must be a number"),
        ({"n_beams": 2, "length_penalty": float("nan")}, "length_penalty must be from -100 to 100"),
        ({"n_beams": 2, "early_stopping": "soon"}, "early_stopping must be True, False or"),
        ({"n_beams": 2, "early_stopping": 1}, "early_stopping must be True, False or"),
        ({"n_beams": 2, "max_tokens": 0}, "max_tokens must be 1 or more"),
        ({"n_beams": 2, "max_tokens": 10**6}, "room for"),
        ({"n_beams": 2, "stop": ""}, "stop string is empty"),
        ({"n_beams": 2, "reference": [-1]}, "reference is out of range"),
    ],
)
def test_options_that_beam_search_does_not_support_are_refused(
    open_session: Open, options: dict[str, Any], message: str
) -> None:
    session = open_session()
    with pytest.raises(ArgumentError, match=message):
        session.beam_search(PROMPT, **options)
    nothing: dict[str, Any] = {"temperature": 0, "logit_bias": {}, "grammar_triggers": []}
    nothing |= {"acceptance": "coupled", "logprobs": None, "json_schema": None}
    assert session.beam_search(PROMPT, n_beams=2, max_tokens=2, seed=5, **nothing)


def test_invalid_calls_of_beam_search_are_refused(open_session: Open) -> None:
    session: Any = open_session()
    with pytest.raises(ArgumentError, match="one prompt at a time"):
        session.beam_search([PROMPT, PROMPT], n_beams=2)
    with pytest.raises(TypeError, match=r"call session\.beam_search"):
        session.beam_search(PROMPT, n_beams=2, num_beams=2)
    with pytest.raises(TypeError, match=r"length_penalty is an option of session\.beam_search"):
        session.generate(PROMPT, length_penalty=2.0)
    with pytest.raises(ArgumentError, match="prompt is empty"):
        session.beam_search([], n_beams=2)
