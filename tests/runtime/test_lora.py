"""LoRA adapters: with every drafter, tokens are those of the merged model."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import llama_cpp
import numpy as np
import pytest
from adapters import random_pairs, write_adapter, write_merged
from heads import write_qwen
from near_ties import tie
from prompts import PROMPTS, most_tokens
from random_model import write_dense, write_experts, write_hybrid, write_sliding_window
from session_options import EXACT_HERE, Open
from specllama import ArgumentError, Generation, ModelError, SpecSession
from specllama.__main__ import main
from specllama.commands._arguments import add_session, session_options
from specllama.commands.spec_cli import executable
from specllama.measure.sequences import first_difference
from specllama.session import BUNDLED_DRAFT

NEAR = 0.1
"""Nats: at another width, an adapter's float products round in another order, and then activations
are rounded to 8 bits."""


@pytest.fixture
def adapter(tmp_path: Path, bundled_model: Path) -> Path:
    return write_adapter(tmp_path / "adapter.gguf", random_pairs(bundled_model, size=0.05))


def same(plain: Generation, tokens: list[int]) -> bool:
    """Return whether tokens are those of a plain run, up to a near-tie."""
    distance = tie(plain, tokens)
    return distance is None or distance < NEAR


@pytest.mark.parametrize("scale", [1.0, 0.5, -1.0])
def test_tokens_with_an_adapter_are_those_of_llama_cpp_python(
    scale: float, adapter: Path, bundled_model: Path, open_session: Open
) -> None:
    llama = llama_cpp.Llama(
        str(bundled_model), n_ctx=2048, type_k=llama_cpp.GGML_TYPE_Q8_0,
        type_v=llama_cpp.GGML_TYPE_Q8_0, flash_attn=True, n_gpu_layers=0, n_threads=1,
        n_threads_batch=1, verbose=False, lora_path=str(adapter), lora_scale=scale,
    )  # fmt: skip
    session = open_session(draft=None, lora={adapter: scale})
    unlike = open_session(draft=None)
    n_unlike = 0
    for name, prompt in PROMPTS.items():
        n = most_tokens(session, prompt, 24)
        found = session.generate(prompt, max_tokens=n, logprobs=20)
        expected: list[int] = []
        for token in llama.generate(session.tokenize(prompt), temp=0.0):
            if token == llama.token_eos() or len(expected) == n:
                break
            expected.append(token)
        assert same(found, expected), name
        n_unlike += found.tokens != unlike.generate(prompt, max_tokens=n).tokens
    llama.close()
    assert n_unlike > 12


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("write", [write_dense, write_experts])
def test_a_lora_adapter_gives_the_logprobs_of_the_merged_model(
    tmp_path: Path, write: Callable[[Path], Path], dtype: Any, open_session: Open
) -> None:
    """It is merged with numpy, in experts, too; the log-probabilities are the same."""
    base = write_merged(tmp_path / "base.gguf", write(tmp_path / "q8.gguf"), {})
    pairs = random_pairs(base, rank=8)
    adapter = write_adapter(tmp_path / "adapter.gguf", pairs, dtype=dtype)
    options: dict[str, Any] = {"kv_type": "f32", "flash_attn": False, "draft": None}
    for scale in (1.0, 0.25):
        merged = write_merged(tmp_path / "merged.gguf", base, pairs, scale)
        expected, found, without = (
            open_session(path, **options, lora=lora).generate(
                [1, 5, 6], max_tokens=12, logprobs=5, temperature=1, seed=1
            )
            for path, lora in ((merged, None), (base, {adapter: scale}), (base, None))
        )
        assert found.tokens == expected.tokens
        assert found.tokens != without.tokens
        near = 2e-3 if dtype is np.float32 else 0.02
        for one, other in zip(found.logprobs, expected.logprobs, strict=True):
            assert one.logprob == pytest.approx(other.logprob, abs=near)


def test_several_lora_adapters_are_summed(
    tmp_path: Path, bundled_model: Path, open_session: Open
) -> None:
    """An adapter and its negative cancel out, and scale 0 has no effect."""
    pairs = random_pairs(bundled_model, size=0.05)
    paths = [
        write_adapter(tmp_path / f"{i}.gguf", random_pairs(bundled_model, seed=i, size=0.05))
        for i in (1, 2)
    ]
    twice = write_adapter(tmp_path / "twice.gguf", pairs, alpha=16.0)
    plain = open_session(draft=None)

    def found(lora: Any) -> list[int]:
        return open_session(draft=None, lora=lora).generate(PROMPTS["module"], max_tokens=20).tokens

    expected = plain.generate(PROMPTS["module"], max_tokens=20, logprobs=20)
    assert found(dict.fromkeys(paths, 0.0)) == expected.tokens
    assert same(expected, found({paths[0]: 1.0, twice: -0.5}))
    assert found(paths) != found(paths[0]) != expected.tokens


@pytest.mark.parametrize(
    ("draft", "options"),
    [
        ("ngram", {}),
        (BUNDLED_DRAFT, {}),
        (BUNDLED_DRAFT, {"spec_length": 2, "spec_tree": 2}),
        ("ngram", {"n_seq": 3}),
        ("ngram", {"spec_length": "auto"}),
    ],
    ids=["ngram", "model", "tree", "together", "planned"],
)
def test_drafts_change_no_token_with_an_adapter(
    draft: Any, options: dict[str, Any], adapter: Path, open_session: Open
) -> None:
    plain = open_session(draft=None, lora=adapter)
    session = open_session(draft=draft, lora=adapter, **options)
    prompts = list(PROMPTS.values())
    n = [most_tokens(plain, prompt, 40) for prompt in prompts]
    n_accepted = 0
    for prompt, most in zip(prompts, n, strict=True):
        expected = plain.generate(prompt, max_tokens=most, logprobs=20)
        found = session.generate(prompt, max_tokens=most)
        assert same(expected, found.tokens)
        assert not found.stats.exact
        n_accepted += found.stats.accepted
    assert n_accepted > 0


def test_beam_search_and_saved_states_use_the_adapter(
    tmp_path: Path, adapter: Path, bundled_model: Path, open_session: Open
) -> None:
    session = open_session(draft=None, lora=adapter)
    expected = session.generate(PROMPTS["class"], max_tokens=12)
    (beam,) = session.beam_search(PROMPTS["class"], max_tokens=12, n_beams=1)
    assert first_difference(beam.tokens, expected.tokens) is None
    session.generate(PROMPTS["class"], max_tokens=12)
    session.save_state(tmp_path / "state")
    open_session(draft=None, lora=[adapter]).load_state(tmp_path / "state")
    other = write_adapter(tmp_path / "other.gguf", random_pairs(bundled_model, seed=5))
    for lora in (None, {adapter: 0.5}, other):
        with pytest.raises(ArgumentError, match="adapter"):
            open_session(draft=None, lora=lora).load_state(tmp_path / "state")


@pytest.mark.skipif(EXACT_HERE is not True, reason="exactness is claimed for x86-64 only")
def test_no_session_with_adapters_is_exact(adapter: Path) -> None:
    with pytest.raises(ArgumentError, match=r"LoRA adapters are used \(lora\)\.$"):
        SpecSession(lora=adapter, exact=True)


def test_commands_accept_adapters(
    adapter: Path, open_session: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    """spec-cli and Python's commands read the same lists and refuse the same ones."""
    options = ["-n", "12", "-ngl", "0", "-t", "1", "-kv", "q8_0", "-fa", "on", "--draft", "none"]
    prompt = PROMPTS["story"]
    texts = set()
    for flags, scale in (
        (["--lora", str(adapter)], 1.0),
        (["--lora-scaled", f"{adapter}:-1.5"], -1.5),
        ([], 0.0),
    ):
        expected = open_session(draft=None, lora={adapter: scale}).generate(prompt, max_tokens=12)
        texts.add(expected.text)
        run = subprocess.run(
            [executable(), "-p", prompt, *options, *flags],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert run.stdout.rstrip("\n") == expected.text.rstrip("\n")
        assert run.stderr == ""
        parser = argparse.ArgumentParser()
        add_session(parser, help="")
        given = session_options(parser.parse_args(["-ngl", "0", "-t", "1", "-kv", "q8_0", *flags]))
        with SpecSession(**given | {"draft": None, "flash_attn": True}) as session:
            assert session.generate(prompt, max_tokens=12).text == expected.text
    assert len(texts) == 3
    for flag, value, message in (
        ("--lora-scaled", "a.gguf", "needs FILE:SCALE, not 'a.gguf'"),
        ("--lora-scaled", ":1", "needs FILE:SCALE, not ':1'"),
        ("--lora-scaled", "a.gguf:x", "needs a number after the colon, not 'x'"),
        ("--lora-scaled", "a.gguf:1,", ""),
        ("--lora", "", ""),
        ("--lora", "a.gguf,", ""),
        ("--lora", f"{adapter},{adapter}", f"{adapter} is given twice; give it once"),
    ):
        run = subprocess.run(
            [executable(), "-p", "x", "-n", "1", "-t", "1", flag, value],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (run.returncode, run.stdout) == (2, "")
        assert message in run.stderr.replace('"', "'")
        assert run.stderr.count("\n") == 1
        try:
            code = main(["trace", "-p", "x", "-t", "1", flag, value])
        except SystemExit as end:  # from argparse
            code = int(end.code or 0)
        assert code == 2
        assert message in capsys.readouterr().err


def test_adapters_that_do_not_fit_are_refused(tmp_path: Path, bundled_model: Path) -> None:
    pairs = random_pairs(bundled_model, 4)
    name = "blk.0.attn_q.weight"
    a, b = pairs[name]
    path = tmp_path / "adapter.gguf"

    def refusal(changed: Any = None, **keys: Any) -> str:
        write_adapter(path, pairs if changed is None else changed, **keys)
        with pytest.raises(ModelError) as caught:
            SpecSession(None, None, lora=path, n_threads=1, n_gpu_layers=0)
        said = str(caught.value)
        assert said.startswith(f"Cannot use {path} as a LoRA adapter: ")
        assert "\n" not in said
        return said

    assert "it is not a LoRA adapter" in refusal(general__type="model")
    assert "it is not a LoRA adapter" in refusal(adapter__type="dora")
    assert "is for models of the architecture qwen2, not llama" in refusal(architecture="qwen2")
    assert "(aLoRA), which is not supported" in refusal(adapter__alora__invocation_tokens=[5, 6])
    assert "its adapter.lora.alpha is not a finite 32-bit float" in refusal(adapter__lora__alpha=4)
    assert "it changes nothing" in refusal({})
    assert f"only one of the two tensors that change {name}" in refusal({name: (a, None)})
    assert f"it changes blk.99.{name[6:]}, which" in refusal({f"blk.99.{name[6:]}": (a, b)})
    shape = f"its change of {name} has another shape"
    assert shape in refusal({name: (a[:, :-1].copy(), b)})
    assert shape in refusal({name: (a, b[:-1])})
    assert shape in refusal({name: (a, np.repeat(b, 2, axis=1))})
    assert shape in refusal({name: (np.stack([a, a]), np.stack([b, b]))})
    assert shape in refusal({name: (a[:0], b[:, :0])})
    # In llama.cpp, the first decode would end the process.
    both = "it changes token_embd.weight, which is also the output of"
    assert both in refusal({"token_embd.weight": (b, a.T.copy())})
    norm = "blk.0.attn_norm.weight"
    assert f"it changes {norm}, which is not a matrix" in refusal({norm: (a, b[:1])})
    assert "not a finite" in refusal(alpha=float("inf"))
    assert "of the architecture a?b, not" in refusal(architecture="a\nb")


def test_bad_lists_of_adapters_are_refused(adapter: Path, tmp_path: Path) -> None:
    for lora, message in (
        (5, "lora must be the path of a GGUF file, a list"),
        (b"x.gguf", "lora must be the path"),
        ([5], "an adapter in lora must be a path"),
        ([["x.gguf"]], "an adapter in lora must be a path"),
        ({adapter: "x"}, "a scale in lora must be a number"),
        ({adapter: float("nan")}, "The scale of the LoRA adapter .* is not a finite number"),
        ([adapter, (adapter, 0.5)], "is given twice; give it once, with one scale"),
        ([tmp_path / f"{i}.gguf" for i in range(9)], "may have 8 LoRA adapters at most, not 9"),
    ):
        with pytest.raises(ArgumentError, match=message) as caught:
            SpecSession(lora=lora)
        assert "\n" not in str(caught.value)
    with pytest.raises(ModelError, match="There is no file"):
        SpecSession(lora=tmp_path / "none.gguf")
    with pytest.raises(ModelError, match="it is an adapter; give it as lora"):
        SpecSession(adapter)
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(adapter.read_bytes()[:-100])
    with pytest.raises(ModelError, match="as a LoRA adapter: it is cut short"):
        SpecSession(lora=cut)


def test_adapters_of_mtp_layers_need_these_layers_loaded(
    tmp_path: Path, open_session: Open
) -> None:
    model = write_qwen(tmp_path / "model.gguf")
    pairs = random_pairs(model)
    of_prediction = {name: pair for name, pair in pairs.items() if name.startswith("blk.2.")}
    assert 0 < len(of_prediction) < len(pairs)
    adapter = write_adapter(tmp_path / "adapter.gguf", pairs, "qwen35")
    assert open_session(model, "mtp", lora=adapter).generate([1, 5], max_tokens=8).tokens
    with pytest.raises(ModelError, match="it changes layer 2, a layer of multi-token prediction"):
        open_session(model, None, lora=adapter)


@pytest.mark.parametrize("write", [write_qwen, write_experts, write_hybrid, write_sliding_window])
def test_the_largest_number_of_adapters_works(
    tmp_path: Path, write: Callable[[Path], Path], open_session: Open
) -> None:
    """They change all that `random_pairs` changes, in small batches: llama.cpp sizes its graph by
    the number of adapters."""
    model = write(tmp_path / "model.gguf")
    architecture = gguf.GGUFReader(model).fields["general.architecture"].contents()
    adapters = [
        write_adapter(
            tmp_path / f"{i}.gguf",
            {
                name: pair
                for name, pair in random_pairs(model, 2, i, 0.01).items()
                if not name.startswith("blk.2.") or write is not write_qwen
            },
            architecture,
        )
        for i in range(8)
    ]
    session = open_session(model, "ngram", lora=adapters, n_batch=8)
    plain = open_session(model, None, lora=adapters)
    expected = plain.generate([1, 5, 6, 7] * 4, max_tokens=20, logprobs=20)
    found = session.generate([1, 5, 6, 7] * 4, max_tokens=20)
    assert same(expected, found.tokens)
