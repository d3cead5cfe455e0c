"""A second GGUF as draft model: the same tokens, correct statistics, and refusals."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from c_library import compiled, needs_compiler
from folders import SUPPORT
from prompts import PROMPTS, most_tokens
from random_model import write_dense, write_recurrent
from scripted_model import BOS, write_scripted_model
from session_options import Open, believe, learn_costs
from specllama import ArgumentError, ModelError
from specllama.__main__ import main
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL

CHECKING = SUPPORT / "checking.py"


@pytest.mark.parametrize("spec_length", [1, 4, 16])
def test_a_draft_model_changes_no_greedy_token(
    spec_length: int, plain_tokens: dict[str, list[int]], open_session: Open
) -> None:
    session = open_session(draft=BUNDLED_DRAFT, spec_length=spec_length)
    accepted = 0
    for name, prompt in PROMPTS.items():
        generation = session.generate(prompt, max_tokens=most_tokens(session, prompt, 200))
        assert generation.tokens == plain_tokens[name], name
        assert generation.stats.drafter_errors == 0
        accepted += generation.stats.accepted
    assert accepted > 1000


SETTINGS: list[dict[str, Any]] = [
    {"temperature": temperature, **cut}
    for temperature, cut in itertools.product(
        [0.3, 0.7, 1.0, 1.5],
        [{}, {"top_k": 40}, {"top_p": 0.9}, {"min_p": 0.05}, {"repeat_penalty": 1.2}],
    )
]


@pytest.mark.here_and_served
def test_a_draft_model_changes_no_sampled_token(open_session: Open) -> None:
    plain = open_session(draft=None)
    session = open_session(draft=BUNDLED_DRAFT)
    accepted = 0
    prompts = itertools.cycle(PROMPTS.items())
    for seed, (setting, (name, prompt)) in enumerate(zip(SETTINGS, prompts, strict=False)):
        n = most_tokens(session, prompt, 80)
        expected = plain.generate(prompt, max_tokens=n, seed=seed, **setting).tokens
        generation = session.generate(prompt, max_tokens=n, seed=seed, **setting)
        assert generation.tokens == expected, (name, setting)
        accepted += generation.stats.accepted
    assert accepted > 200


def test_the_draft_model_decodes_no_accepted_token_twice(open_session: Open) -> None:
    session = open_session(draft=BUNDLED_DRAFT, spec_length=4)
    for name, prompt in PROMPTS.items():
        most = most_tokens(session, prompt, 100)
        stats = session.generate(prompt, max_tokens=most).stats
        rejected = stats.drafted - stats.accepted
        most = stats.prompt_tokens + stats.generated_tokens + rejected
        assert 0 < stats.draft_decoded_tokens <= most, name
        # The last token of a draft is decoded only after it is accepted.
        most = stats.prompt_tokens + stats.drafted + stats.rounds
        assert stats.draft_decoded_tokens <= most


def test_the_draft_models_memory_is_reused_for_the_next_prompt(open_session: Open) -> None:
    session = open_session(draft=BUNDLED_DRAFT)
    tokens = session.tokenize(PROMPTS["module"])
    first = session.generate(tokens, max_tokens=40)
    again = session.generate(tokens, max_tokens=40)
    assert again.tokens == first.tokens
    assert again.stats.draft_decoded_tokens <= first.stats.draft_decoded_tokens - len(tokens) + 2
    assert again.stats.accepted == first.stats.accepted


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_draft_is_the_draft_models_own_continuation(
    open_session: Open, temperature: float
) -> None:
    """The same tokens with the same confidence."""
    session = open_session(draft=BUNDLED_DRAFT, spec_length=8)
    alone = open_session(BUNDLED_DRAFT, draft=None)
    tokens = session.tokenize(PROMPTS["module again"])
    sampling: dict[str, Any] = {"temperature": temperature, "seed": 3}
    generation = session.generate(tokens, max_tokens=60, trace=True, **sampling)
    for each in generation.trace.rounds:
        so_far = [*tokens, *generation.tokens[: each.position]]
        expected = alone.generate(so_far, max_tokens=len(each.draft), logprobs=0, **sampling)
        assert [one.token for one in each.draft] == expected.tokens
        for drafted, own in zip(each.draft, expected.logprobs, strict=True):
            assert drafted.confidence == pytest.approx(np.exp(own.logprob), rel=1e-4)


def checked(*arguments: object) -> dict[str, Any]:
    """Return the output of CHECKING."""
    words = [json.dumps(one) if isinstance(one, dict) else str(one) for one in arguments]
    done = subprocess.run(
        [sys.executable, CHECKING, *words],
        capture_output=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs_compiler
def test_the_draft_model_verifies_the_longest_copies(open_session: Open, tmp_path: Path) -> None:
    library = compiled("recording_llama", tmp_path)
    found = checked(library, BUNDLED_MODEL, "csv", {"max_tokens": 200})
    assert max(found["widths"][1:]) >= 64
    session = open_session(draft=None)
    prompt = session.tokenize(PROMPTS["csv"])
    assert session.generate([*prompt, *prompt], max_tokens=200).tokens == found["tokens"]


@needs_compiler
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("name", ["class", "csv"])
def test_predictions_of_other_drafters_change_no_token_of_the_draft_model(
    open_session: Open, tmp_path: Path, name: str, temperature: float
) -> None:
    """Where the draft model expects the same tokens, one decode drafts many of them."""
    sampling: dict[str, Any] = {"temperature": temperature, "seed": 3}
    library = compiled("recording_llama", tmp_path)
    found = checked(library, BUNDLED_MODEL, name, {"max_tokens": 120, **sampling})
    alone = open_session(BUNDLED_DRAFT, draft=None)
    prompt = alone.tokenize(PROMPTS[name])
    n_own = 0
    for position, draft in zip(found["positions"], found["drafts"], strict=True):
        own = [
            (token, sure)
            for token, sure, _ in itertools.takewhile(lambda one: one[2] == "model", draft)
        ]
        if not own:
            continue
        so_far = [*prompt, *prompt, *found["tokens"][:position]]
        expected = alone.generate(so_far, max_tokens=len(own), logprobs=0, **sampling)
        assert [token for token, _ in own] == expected.tokens
        assert expected.logprobs is not None
        for (_, sure), said in zip(own, expected.logprobs, strict=True):
            assert sure == pytest.approx(np.exp(said.logprob), rel=1e-4)
        n_own += len(own)
    assert n_own > 0
    if (name, temperature) == ("class", 0):
        assert len(found["widths"]) < n_own / 2


@pytest.mark.here_and_served
def test_draft_p_min_ends_drafts_at_unlikely_tokens(open_session: Open) -> None:
    def generate(p_min: float) -> Any:
        session = open_session(draft=BUNDLED_DRAFT, spec_length=8, draft_p_min=p_min)
        return session.generate(PROMPTS["module"], max_tokens=100)

    always, likely, never = generate(0.0), generate(0.5), generate(1.0)
    assert always.tokens == likely.tokens == never.tokens
    assert never.stats.drafted < likely.stats.drafted < always.stats.drafted
    assert likely.stats.acceptance_rate > always.stats.acceptance_rate


def test_a_draft_model_with_another_tokenizer_is_refused(
    tmp_path: Path, open_session: Open
) -> None:
    write_scripted_model(target := tmp_path / "target.gguf", ["a", "b", "c"])
    cases: list[tuple[list[str | bytes], str]] = [
        (["a", "x", "c"], 'its token 4 is "x", not "b"'),
        (["a", "b", "c", "d"], "it has 8 tokens, not 7"),
    ]
    for i, (pieces, message) in enumerate(cases):
        write_scripted_model(draft := tmp_path / f"draft{i}.gguf", pieces)
        with pytest.raises(ModelError, match=message) as caught:
            open_session(target, draft, kv_type="f16")
        assert str(target) in str(caught.value)
        assert str(draft) in str(caught.value)
    with pytest.raises(ModelError, match="its tokenizer is of another type"):
        open_session(target, BUNDLED_DRAFT, kv_type="f16")


def test_a_model_that_drafts_for_itself_is_always_right(tmp_path: Path, open_session: Open) -> None:
    write_scripted_model(target := tmp_path / "target.gguf", ["a", "b", "c"], then=None)
    session = open_session(target, target, kv_type="f16", spec_length=3)
    generation = session.generate([BOS], max_tokens=20)
    assert generation.text == ("abc" * 7)[:20]
    assert generation.stats.acceptance_rate == 1.0


def test_a_recurrent_draft_model_is_refused(tmp_path: Path, open_session: Open) -> None:
    target = write_dense(tmp_path / "dense.gguf")
    draft = write_recurrent(tmp_path / "recurrent.gguf")
    with pytest.raises(ModelError, match=r"its memory .* cannot be cut back"):
        open_session(target, draft)
    # The reverse works: a recurrent target returns to saved states.
    assert open_session(draft, target).generate([1, 5, 6], max_tokens=9).stats.drafted > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draft": "/no/such.gguf"}, "There is no file /no/such.gguf"),
        ({"draft": ""}, "draft is empty; give a path"),
        ({"draft_p_min": 1.5}, "draft_p_min must be from 0"),
        ({"draft_p_min": "x"}, "draft_p_min must be a number"),
        ({"draft_p_min": np.nan}, "draft_p_min must be from 0"),
        ({"draft_kv_type": "q1"}, "^draft_kv_type must be one of"),
        ({"kv_type": "q1"}, "^kv_type must be one of"),
        ({"draft_device": "a\0b"}, "draft_device has a NUL"),
        ({"draft_n_gpu_layers": np.array([1, 2])}, "draft_n_gpu_layers must be a whole number"),
        ({"draft_n_threads": -1}, "n_threads must be"),
        ({"draft_n_gpu_layers": -2}, "draft_n_gpu_layers must be"),
    ],
)
def test_bad_draft_model_options_are_refused(
    open_session: Open, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((ArgumentError, ModelError), match=message):
        open_session(**({"draft": BUNDLED_DRAFT} | options))


def test_command_errors_name_the_wrong_draft_model_flag(capsys: pytest.CaptureFixture[str]) -> None:
    for flags, wrong in ((["-ngl", "-2"], "-ngl/"), (["-ngld", "-2"], "-ngld/")):
        with pytest.raises(SystemExit, match="2"):
            main(["trace", "-p", "x", "-t", "1", *flags])
        error = capsys.readouterr().err
        assert f"argument {wrong}" in error
        assert "a whole number from -1 on, not '-2'" in error


def test_nan_logits_of_the_draft_model_affect_one_request_only(
    open_session: Open, tmp_path: Path
) -> None:
    """One of three texts contains a token whose embedding is damaged."""
    damaged = 40
    target, draft = (write_dense(tmp_path / f"{seed}.gguf", seed) for seed in (1, 11))
    reader = gguf.GGUFReader(draft, "r+")
    (embedding,) = (one for one in reader.tensors if one.name == "token_embd.weight")
    embedding.data[damaged, :2] = (0x00, 0x7E)  # the scale of the first weights: NaN
    embedding.data.flush()
    session = open_session(target, draft, n_seq=3)
    options: dict[str, Any] = {"max_tokens": 20, "logit_bias": {2: -math.inf, damaged: -math.inf}}
    streams = [session.stream([1, token, 6], **options) for token in (damaged, 7, 8)]
    while session._backend.step():
        pass
    failed, *others = (stream.result() for stream in streams)
    assert failed.stats.drafter_errors > 0
    assert "contain a NaN" in failed.stats.last_drafter_error
    for one in others:
        assert one.stats.drafter_errors == 0
        assert one.stats.drafted > 0


def test_a_draft_model_that_fails_after_forced_tokens_changes_no_token(
    open_session: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = tmp_path / "damaged.gguf"
    shutil.copy(BUNDLED_DRAFT, draft)
    reader = gguf.GGUFReader(draft, "r+")
    (norm,) = (one for one in reader.tensors if one.name == "output_norm.weight")
    norm.data[:] = math.nan
    norm.data.flush()
    grammar = 'root ::= "def fibonacci(n):\\n    return n if n < 2 else " [a-z0-9 ()]* "\\n"'
    request: dict[str, Any] = {"max_tokens": 40, "grammar": grammar}
    plain = open_session(draft=None).generate(PROMPTS["module"], **request)
    monkeypatch.setenv("SPECLLAMA_CACHE", str(cache := tmp_path / "cache"))
    learn_costs(open_session(draft="ngram", spec_length="auto"))
    (of_target,) = cache.glob("*.curve")
    learn_costs(open_session(draft=draft, spec_length="auto"))
    for file in cache.glob("*.curve"):
        believe(file, *([0.2] * 65 if file == of_target else [0.001]))
    session = open_session(draft=draft, spec_length="auto")
    generation = session.generate(PROMPTS["module"], **request)
    assert generation.tokens == plain.tokens
    assert generation.stats.drafter_errors > 0
    assert "contain a NaN" in generation.stats.last_drafter_error
