"""Files that fail an assertion of llama.cpp give one sentence, and the process continues."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from any_model import architectures, write
from specllama import ModelError, SpecSession

OPEN = """
import sys
from specllama import ModelError, SpecSession
sound, *damaged = sys.argv[1:]
for model in damaged:
    for draft in (None, "ngram"):
        try:
            SpecSession(model, draft, n_ctx=128, n_threads=1)
        except ModelError as error:
            print(error)
with SpecSession(sound, "ngram", n_ctx=128, n_threads=1) as session:
    print(len(session.generate([1, 5, 6, 7], max_tokens=4, logit_bias={2: -1e9}).tokens))
"""

DAMAGES: list[tuple[str, str, Any, str]] = [
    ("gemma4", "attention.value_length", 3, r"gemma4\.cpp:\d+: n_embd_head == "),
    ("gemma4 with experts", "attention.shared_kv_layers", 3, r"llama-kv-cache\.cpp:"),
    ("deepseek2", "attention.key_length_mla", 3, r"deepseek2\.cpp:\d+: n_embd_head_qk_nope >= 1\)"),
    ("minimax-m2", "expert_gating_func", 0, r"llama-graph\.cpp:"),
]

ABORT = """
import ctypes, sys
from pathlib import Path
import llama_cpp
from specllama import SpecSession
SpecSession(sys.argv[1], None, n_ctx=128, n_threads=1).close()
library = next((Path(llama_cpp.__file__).parent / "lib").glob("libggml-base.*"))
ctypes.CDLL(str(library)).ggml_abort(b"somewhere.cpp", 7, b"something failed")
"""


def run(program: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    """Run without a debugger for backtraces, which would hang in a sanitized process."""
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        errors="replace",
        check=False,
        env=os.environ | {"GGML_NO_BACKTRACE": "1"},
    )


def write_damaged(path: Path, name: str, key: str, value: Any) -> Path:
    entry = architectures()[name]
    return write(path, name, entry | {"values": entry["values"] | {key: value}})


def test_assertions_while_a_model_opens_become_errors(tmp_path: Path) -> None:
    sound = write(tmp_path / "sound.gguf", "qwen3", architectures()["qwen3"])
    damaged = [
        write_damaged(tmp_path / f"{i}.gguf", *damage[:3]) for i, damage in enumerate(DAMAGES)
    ]
    ran = run(OPEN, sound, *damaged)
    *sentences, n_tokens = ran.stdout.splitlines()
    assert (ran.returncode, n_tokens) == (0, "4"), ran.stderr
    assert sentences[::2] == sentences[1::2]
    for sentence, path, (*_, what) in zip(sentences[::2], damaged, DAMAGES, strict=True):
        begin, _, said = sentence.partition(" failed (")
        assert begin == f"Cannot use {path} as a model: an assertion of llama.cpp"
        assert re.match(what, said)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("rwkv7", "wkv.head_size"),
        ("rwkv6qwen2", "wkv.head_size"),
        ("deepseek4", "attention.output_group_count"),
    ],
)
def test_values_that_llama_cpp_divides_by_cannot_be_0(tmp_path: Path, name: str, key: str) -> None:
    with pytest.raises(ModelError, match=rf"its (.*\.)?{key} is 0"):
        SpecSession(write_damaged(tmp_path / "model.gguf", name, key, 0), None, n_ctx=128)


ABORT_WHILE_LOADING = """
import ctypes, sys
from pathlib import Path
import llama_cpp
from specllama import SpecSession
library = next((Path(llama_cpp.__file__).parent / "lib").glob("libggml-base.*"))
abort = ctypes.CDLL(str(library)).ggml_abort
fail = lambda *_: abort(b"somewhere.cpp", 7, b"something failed")
SpecSession(sys.argv[1], None, n_ctx=128, progress=fail)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for a library of Linux")
def test_assertions_outside_of_loading_end_the_process(tmp_path: Path) -> None:
    sound = write(tmp_path / "sound.gguf", "qwen3", architectures()["qwen3"])
    for program in (ABORT, ABORT_WHILE_LOADING):
        ran = run(program, sound)
        assert ran.returncode < 0
        assert "somewhere.cpp:7: something failed" in ran.stderr
