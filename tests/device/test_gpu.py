"""Sessions on a GPU that llama.cpp was built for; skipped elsewhere.

On a GPU, the order of sums depends on the batch width. So speculation may change which of two
nearly equal candidates wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llama_cpp
import pytest
from adapters import random_pairs, write_adapter
from blocks import KINDS, write_block
from drafters import SometimesRight
from heads import write_eagle3
from near_ties import tie
from processes import run_spec_cli
from prompts import ENDLESS, PROMPTS, most_tokens
from random_model import N_VOCAB, WRITERS, words, write_dense, write_experts
from session_options import Open
from specllama import ArgumentError, Generation, SpecSession, list_devices
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL

GPUS = [device.name for device in list_devices() if device.name != "CPU"]

pytestmark = pytest.mark.skipif(not GPUS, reason="no GPU that llama.cpp was built for")


NEAR = 0.15
"""Nats that rounding may decide."""

FAR = 0.5
"""The same against another device or another kind of memory, and where random weights propagate the
rounding of a whole prompt."""

FEW = ("module", "function", "class", "english", "json", "counting", "cjk", "near the limit")
"""Names of prompts."""


@pytest.fixture
def open_gpu() -> Iterator[Open]:
    """Opens sessions with all layers on the GPU, and closes them after the test."""
    opened: list[SpecSession] = []

    def open_one(model: Path | None = None, draft: Any = "ngram", **options: Any) -> SpecSession:
        options = {"spec_length": 4, "n_threads": 1} | options
        opened.append(SpecSession(model, draft, **options))
        return opened[-1]

    yield open_one
    for session in opened:
        session.close()


@pytest.fixture(params=sorted({*WRITERS} - {"experts"}))  # rounding chooses other experts
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return WRITERS[request.param](tmp_path / "random.gguf")


def distance(expected: Generation, tokens: list[int], temperature: float = 0.0) -> float:
    """Return the nats between the two candidates at the first difference (0: equal tokens)."""
    return tie(expected, tokens, temperature) or 0.0


def bundled(session: SpecSession, name: str, **options: Any) -> Generation:
    prompt = PROMPTS[name]
    n_tokens = most_tokens(session, prompt, 100)
    return session.generate(prompt, max_tokens=n_tokens, **ENDLESS, **options)


NO_END: dict[str, Any] = {"logit_bias": {1: -math.inf, 2: -math.inf}, "logprobs": 20}


def test_plain_tokens_on_a_gpu_are_those_of_llama_cpp_python(open_gpu: Open) -> None:
    session = open_gpu(None, None)
    llama = llama_cpp.Llama(
        str(BUNDLED_MODEL), n_ctx=2048, n_gpu_layers=-1, n_threads=1, verbose=False
    )
    for name in FEW:
        prompt = session.tokenize(PROMPTS[name])
        n_tokens = most_tokens(session, PROMPTS[name], 60)
        mine = session.generate(prompt, max_tokens=n_tokens, logprobs=20)
        theirs: list[int] = []
        for token in llama.generate([*prompt], temp=0.0):
            if len(theirs) == len(mine.tokens):
                break
            theirs.append(token)
        assert distance(mine, theirs) < NEAR, name
    llama.close()


def test_log_probabilities_on_a_gpu_are_near_those_of_the_cpu(model: Path, open_gpu: Open) -> None:
    here, there = open_gpu(model, None, n_gpu_layers=0), open_gpu(model, None)
    for n in (1, 20, 70):
        prompt = [1, *words(n, seed=n)]
        mine, its = (one.generate(prompt, max_tokens=1, **NO_END) for one in (here, there))
        found = dict(its.logprobs[0].top)
        for token, logprob in mine.logprobs[0].top[:10]:
            assert abs(found[token] - logprob) < FAR, n


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_drafts_on_a_gpu_change_no_token_except_near_ties(
    model: Path, open_gpu: Open, temperature: float
) -> None:
    """Every round is rewound to a position inside its batch."""
    plain, drafter = open_gpu(model, None), SometimesRight(N_VOCAB)
    accepted = drafted = 0
    for spec_length in (3, 12):
        session = open_gpu(model, drafter, spec_length=spec_length)
        for n in (1, 30, 150):
            prompt = [1, *words(n, seed=n)]
            options = NO_END | {"max_tokens": 60, "temperature": temperature, "seed": n}
            expected = plain.generate(prompt, **options)
            drafter.coming = expected.tokens
            generation = session.generate(prompt, **options)
            assert distance(expected, generation.tokens, temperature) < NEAR, (spec_length, n)
            accepted += generation.stats.accepted
            drafted += generation.stats.drafted
    assert 50 < accepted < drafted


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ({}, {}),
        ({"kv_type": "q8_0"}, {}),
        ({"flash_attn": False}, {}),
        ({}, {"spec_length": "auto"}),
        ({}, {"draft": BUNDLED_DRAFT}),
        ({}, {"draft": BUNDLED_DRAFT, "draft_n_gpu_layers": 0}),
        ({}, {"draft": BUNDLED_DRAFT, "cascade": False, "spec_tree": 4}),
        ({"n_gpu_layers": 2}, {}),
        ({"n_gpu_layers": 0}, {"draft": BUNDLED_DRAFT, "draft_n_gpu_layers": -1}),
    ],
)
def test_the_bundled_pair_drafts_without_changing_tokens_on_a_gpu(
    open_gpu: Open, target: dict[str, Any], options: dict[str, Any]
) -> None:
    """Whole and in part on the GPU."""
    plain, session = open_gpu(None, None, **target), open_gpu(None, **target, **options)
    accepted = 0
    for name in FEW:
        expected = bundled(plain, name, logprobs=20)
        generation = bundled(session, name)
        assert distance(expected, generation.tokens) < FAR, name
        accepted += generation.stats.accepted
    assert accepted > 50


def test_an_adapter_works_with_layers_on_the_gpu_in_whole_and_in_part(
    tmp_path: Path, open_gpu: Open
) -> None:
    """The tokens are those of llama-cpp-python."""
    adapter = write_adapter(tmp_path / "adapter.gguf", random_pairs(BUNDLED_MODEL, size=0.05))
    llama = llama_cpp.Llama(
        str(BUNDLED_MODEL), n_ctx=2048, n_gpu_layers=-1, n_threads=1, verbose=False,
        lora_path=str(adapter),
    )  # fmt: skip
    for n_gpu_layers in (-1, 3):
        session = open_gpu(lora=adapter, n_gpu_layers=n_gpu_layers)
        for name in FEW:
            mine = bundled(session, name, logprobs=20)
            tokens = llama.generate(session.tokenize(PROMPTS[name]), temp=0.0)
            theirs = [token for token, _ in zip(tokens, mine.tokens, strict=False)]
            assert distance(mine, theirs) < FAR, (n_gpu_layers, name)
    llama.close()


@pytest.mark.parametrize("n_cpu_moe", [1, 4])
def test_experts_in_main_memory_give_nearly_the_same_logprobs(
    tmp_path: Path, open_gpu: Open, n_cpu_moe: int
) -> None:
    """Only the first token is compared, because later ones may use other experts. From 32 tokens
    on, the GPU multiplies with the experts all the same."""
    model = write_experts(tmp_path / "model.gguf", 4, 8)
    whole, session = open_gpu(model, None), open_gpu(model, n_cpu_moe=n_cpu_moe)
    for n in (1, 20, 70, 150):
        prompt = [1, *words(n, seed=n)]
        expected = whole.generate(prompt, max_tokens=1, **NO_END)
        found = dict(session.generate(prompt, max_tokens=1, **NO_END).logprobs[0].top)
        for token, logprob in expected.logprobs[0].top[:5]:
            assert abs(found[token] - logprob) < FAR, n


def test_many_requests_on_a_gpu_get_the_tokens_of_each_alone(model: Path, open_gpu: Open) -> None:
    plain, session = open_gpu(model, None), open_gpu(model, n_seq=8, spec_length="auto")
    prompts = [[1, *words(n, seed=n)] for n in (1, 5, 20, 20, 40, 70, 130, 150)]
    streams = [session.stream(prompt, max_tokens=40, **NO_END) for prompt in prompts]
    for stream, prompt in zip(streams, prompts, strict=True):
        for _ in stream:
            pass
        expected = plain.generate(prompt, max_tokens=40, **NO_END)
        assert distance(expected, stream.result().tokens) < FAR, len(prompt)


def test_many_texts_of_the_bundled_pair_on_a_gpu_get_the_tokens_of_each_alone(
    open_gpu: Open,
) -> None:
    plain, session = open_gpu(None, None), open_gpu(n_seq=len(FEW), spec_length="auto")
    streams = [session.stream(PROMPTS[name], max_tokens=50, **ENDLESS) for name in FEW[:-1]]
    for stream, name in zip(streams, FEW, strict=False):
        for _ in stream:
            pass
        expected = plain.generate(PROMPTS[name], max_tokens=50, logprobs=20, **ENDLESS)
        assert distance(expected, stream.result().tokens) < FAR, name


@pytest.mark.parametrize("kind", ["eagle3", *KINDS])
def test_a_head_drafts_the_same_from_states_on_the_gpu(
    tmp_path: Path, open_gpu: Open, kind: str
) -> None:
    """The drafts are those that the head makes from states on the processor."""
    target, head = write_dense(tmp_path / "target.gguf"), tmp_path / "head.gguf"
    if kind == "eagle3":
        write_eagle3(head)
    else:
        write_block(head, kind)
    prompt = [1, *words(40, seed=1)]
    plain = open_gpu(target, None).generate(prompt, max_tokens=40, **NO_END)
    rounds = []
    for n_gpu_layers in (0, -1):
        session = open_gpu(target, head, n_gpu_layers=n_gpu_layers)
        generation = session.generate(prompt, max_tokens=40, **NO_END)
        assert distance(plain, generation.tokens) < FAR
        rounds.append(generation.stats.by_round[:5])
    assert rounds[0] == rounds[1]


def test_a_saved_state_is_continued_on_the_gpu(open_gpu: Open, tmp_path: Path) -> None:
    session = open_gpu()
    first = bundled(session, "function", logprobs=20)
    session.save_state(tmp_path / "state")
    again = open_gpu()
    again.load_state(tmp_path / "state")
    generation = bundled(again, "function")
    assert generation.stats.reused_tokens > 0
    assert distance(first, generation.tokens) < NEAR


def test_exact_sessions_run_on_the_cpu(open_gpu: Open) -> None:
    """As documented: the default uses no GPU; explicit GPU layers are refused."""
    session = open_gpu(exact=True)
    assert bundled(session, "function").stats.exact
    with pytest.raises(ArgumentError, match=r"a GPU is used \(n_gpu_layers is not 0\)"):
        open_gpu(exact=True, n_gpu_layers=-1)


@pytest.mark.parametrize(
    "flags",
    [
        ["-dev", GPUS[0] if GPUS else "", "-ngld", "0"],
        ["-dev", "none", "-devd", GPUS[0] if GPUS else ""],
        ["-ngl", "2"],
        ["-dev", "none"],
    ],
)
def test_spec_cli_generates_with_device_flags(flags: list[str]) -> None:
    prompt = ["-p", PROMPTS["function"], "-n", "20", "--temp", "0"]
    process = run_spec_cli(*prompt, "-md", str(BUNDLED_DRAFT), *flags)
    assert process.returncode == 0, process.stderr
    assert process.stdout


def test_spec_cli_lists_the_gpus() -> None:
    listed = run_spec_cli("--list-devices").stdout.decode()
    assert all(f"{name}: " in listed for name in GPUS)
