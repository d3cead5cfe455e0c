"""Contexts longer than a model's training, and ways to load its weights."""

from __future__ import annotations

import re
import subprocess
from ast import literal_eval
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llama_cpp
import pytest
from heads import write_perfect_pair
from prompts import ENDLESS, PROMPTS
from session_options import EXACT_HERE
from specllama import ArgumentError, SpecSession
from specllama.__main__ import main
from specllama.commands.spec_cli import executable
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL

Open = Callable[..., SpecSession]

PROMPT = PROMPTS["module"]
N = 40
YARN = llama_cpp.LLAMA_ROPE_SCALING_TYPE_YARN
LINEAR = llama_cpp.LLAMA_ROPE_SCALING_TYPE_LINEAR
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "linear": (
        {"rope_scaling": "linear", "rope_scale": 2},
        {"rope_scaling_type": LINEAR, "rope_freq_scale": 0.5},
    ),
    "yarn": (
        {"rope_scaling": "yarn", "rope_scale": 4, "yarn_orig_ctx": 128},
        {"rope_scaling_type": YARN, "rope_freq_scale": 0.25, "yarn_orig_ctx": 128},
    ),
    "base": ({"rope_freq_base": 5e5}, {"rope_freq_base": 5e5}),
}
"""Our options, and the equivalent ones of llama-cpp-python."""


@pytest.mark.parametrize("way", WAYS)
def test_tokens_with_rope_options_are_those_of_llama_cpp_python(
    way: str, open_session: Open
) -> None:
    ours, theirs = WAYS[way]
    llama = llama_cpp.Llama(
        str(BUNDLED_MODEL), n_ctx=512, n_gpu_layers=0, flash_attn=True,
        type_k=llama_cpp.GGML_TYPE_Q8_0, type_v=llama_cpp.GGML_TYPE_Q8_0, verbose=False, **theirs,
    )  # fmt: skip
    options: dict[str, Any] = {"n_ctx": 512, "kv_type": "q8_0", "flash_attn": True, **ours}
    plain = open_session(draft=None, **options)
    tokens = plain.tokenize(PROMPT)
    expected = []
    for token in llama.generate(tokens, temp=0, repeat_penalty=1):
        expected.append(token)
        if len(expected) == N:
            break
    llama.close()
    assert plain.generate(tokens, max_tokens=N).tokens == expected
    usual = open_session(draft=None, n_ctx=512, kv_type="q8_0", flash_attn=True)
    assert usual.generate(tokens, max_tokens=N).tokens != expected


@pytest.mark.parametrize("draft", ["ngram", BUNDLED_DRAFT], ids=["ngram", "model"])
def test_drafts_change_no_token_with_rope_scaling(draft: str | Path, open_session: Open) -> None:
    ours, _ = WAYS["yarn"]
    options: dict[str, Any] = {"exact": EXACT_HERE, **ours}
    for temperature in (0.0, 1.0):
        asked = {"max_tokens": N, "temperature": temperature, "seed": 1, **ENDLESS}
        expected = open_session(draft=None, **options).generate(PROMPT, **asked)
        found = open_session(draft=draft, spec_length=4, **options).generate(PROMPT, **asked)
        assert found.tokens == expected.tokens
        assert found.stats.drafted > 0


def test_rope_scaling_applies_to_heads(tmp_path: Path, open_session: Open) -> None:
    """It predicts the next token only if its RoPE is that of its target."""
    write_perfect_pair(tmp_path, shares=False)
    options: dict[str, Any] = {"draft": tmp_path / "head.gguf", "spec_length": 4}
    session = open_session(tmp_path / "target.gguf", rope_scale=2, **options)
    found = session.generate([1, 5, 6, 7], max_tokens=N)
    assert found.stats.accepted > 0


def test_a_state_with_other_rope_options_is_refused(open_session: Open, tmp_path: Path) -> None:
    ours, _ = WAYS["yarn"]
    state = tmp_path / "state"
    session = open_session(draft=None, **ours)
    session.generate(PROMPT, max_tokens=3)
    session.save_state(state)
    open_session(draft=None, **ours).load_state(state)
    with pytest.raises(ArgumentError, match="scaling yarn"):
        open_session(draft=None).load_state(state)
    for other in ({"yarn_orig_ctx": 64}, {"rope_scale": 2}, {"rope_freq_base": 5e5}):
        with pytest.raises(ArgumentError, match="saved by another kind of session"):
            open_session(draft=None, **(ours | other)).load_state(state)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rope_scaling": "long"}, 'rope_scaling must be none, linear or yarn, not "long"'),
        ({"rope_scale": 0}, r"rope_scale must be from 0\.001 to 1000, not 0\."),
        ({"rope_scale": 1e300}, r"rope_scale must be from 0\.001 to 1000, not 1e\+300\."),
        ({"rope_scale": float("nan")}, "rope_scale must be from 0"),
        ({"rope_freq_base": 0.5}, r"rope_freq_base must be from 1 to 1e\+12, not 0\.5\."),
        ({"rope_freq_base": float("inf")}, "rope_freq_base must be from 1"),
        ({"yarn_orig_ctx": 0}, "yarn_orig_ctx must be 1 or more, not 0"),
        ({"yarn_orig_ctx": 1.5}, "yarn_orig_ctx must be a whole number"),
        ({"load_mode": "fast"}, "load_mode must be auto, none, mmap, mlock, mmap\\+mlock or dio"),
        ({"load_mode": 1}, "load_mode must be a str"),
    ],
    ids=str,
)
def test_bad_rope_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        SpecSession(**options)


def spec_cli(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([executable(), *arguments], capture_output=True, check=False, timeout=120)


def test_commands_accept_rope_flags(open_session: Open, capfd: pytest.CaptureFixture[str]) -> None:
    ours, _ = WAYS["yarn"]
    expected = open_session(draft=None, **ours).generate(PROMPT, max_tokens=N).text
    flags = ["--rope-scaling", "yarn", "--rope-scale", "4", "--yarn-orig-ctx", "128"]
    flags += ["--load-mode", "mmap+mlock", "-kv", "q8_0", "-fa", "on"]
    process = spec_cli("-p", PROMPT, "-n", str(N), "--no-spec", *flags)
    assert process.stdout.decode() == expected
    capfd.readouterr()
    assert main(["trace", "-p", PROMPT, "-n", str(N), "--no-spec", *flags]) == 0
    pieces = re.findall(r"plain ('.*'|\".*\")$", capfd.readouterr().out, re.MULTILINE)
    assert "".join(map(literal_eval, pieces)) == expected
    assert spec_cli("-p", "x", "--rope-scale", "0").returncode == 2
    assert spec_cli("-p", "x", "--rope-scaling", "long").returncode == 2


@pytest.mark.parametrize("mode", ["none", "mmap", "mlock", "mmap+mlock", "dio"])
def test_load_modes_change_no_token(mode: str, open_session: Open) -> None:
    expected = open_session(draft=BUNDLED_DRAFT).generate(PROMPT, max_tokens=N).tokens
    session = open_session(draft=BUNDLED_DRAFT, load_mode=mode)
    assert session.generate(PROMPT, max_tokens=N).tokens == expected
