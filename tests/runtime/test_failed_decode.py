"""Decodes that fail half way, by llama.cpp's own abort; no generated token is lost."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from c_library import compiled, needs_compiler
from folders import SUPPORT
from heads import write_eagle3, write_glm
from random_model import WRITERS, write_dense

EXACT = {"kv_type": "q8_0", "flash_attn": True, "spec_length": 4}

pytestmark = needs_compiler


@dataclass
class Outcome:
    """The outcome of three requests during failing decodes.

    Attributes:
        n_failed: Number of failed decodes.
        errors: Error of each request (None: no error).
        found: Tokens generated until then.
        rest: Tokens generated after decodes succeeded again.
        of_saved: The same in a session that loaded the first one's saved state (None: it had none
            to save).
        expected: Expected tokens of each request.
        n_drafter_errors: Number of failed drafts.
        right: Share of the drafts for the rest that was accepted.
    """

    n_failed: int
    errors: list[str | None]
    found: list[list[int]]
    rest: list[list[int]]
    of_saved: list[list[int]] | None
    expected: list[list[int]]
    n_drafter_errors: int
    right: float


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("failing_llama", tmp_path_factory.mktemp("library"))


def run(library: Path, model: Path, n_sequences: int, when: str, **options: Any) -> Outcome:
    script = SUPPORT / "failing_decodes.py"
    arguments = [library, model, json.dumps(EXACT | options), str(n_sequences), when]
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, check=True)
    outcome = Outcome(**json.loads(done.stdout))
    assert outcome.n_failed > 0
    return outcome


@pytest.fixture(params=sorted(WRITERS))
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def model(kind: str, tmp_path: Path) -> Path:
    return WRITERS[kind](tmp_path / "random.gguf")


@pytest.mark.parametrize("n_seq", [1, 3])
def test_a_failed_decode_ends_its_requests_and_keeps_their_tokens(
    library: Path, model: Path, kind: str, n_seq: int
) -> None:
    """The memory is consistent afterwards."""
    exact = n_seq > 1 and platform.machine() == "x86_64" and kind not in ("recurrent", "hybrid")
    outcome = run(library, model, 1, "begun", n_seq=n_seq, exact=exact or "auto")
    for i, expected in enumerate(outcome.expected):
        assert "aborted the decode" in (outcome.errors[i] or "")
        assert outcome.found[i] == expected[: len(outcome.found[i])]
        assert outcome.found[i] + outcome.rest[i] == expected
    assert sum(len(tokens) > 0 for tokens in outcome.found) >= n_seq
    if outcome.of_saved is None:  # a state that cannot be rewound is lost with the decode
        assert kind not in ("dense", "experts", "sliding window")
    else:
        assert outcome.of_saved == outcome.rest


def test_requests_whose_common_decode_fails_are_retried_alone(
    library: Path, model: Path, kind: str
) -> None:
    exact = platform.machine() == "x86_64" and kind not in ("recurrent", "hybrid")
    outcome = run(library, model, 2, "start", n_seq=3, exact=exact)
    for i, expected in enumerate(outcome.expected):
        assert outcome.found[i] == expected[: len(outcome.found[i])]
        assert outcome.found[i] + outcome.rest[i] == expected
        # A state that cannot be rewound is lost with the decode.
        assert outcome.errors[i] is None or "aborted" in outcome.errors[i]
    if kind in ("dense", "experts", "sliding window"):
        assert outcome.errors == [None] * 3


@pytest.mark.parametrize("kind", ["eagle3", "mtp"])
def test_a_failed_decode_does_not_corrupt_a_heads_memory(
    library: Path, tmp_path: Path, kind: str
) -> None:
    write = write_glm if kind == "mtp" else write_dense
    model = write(tmp_path / "random.gguf")
    draft = "mtp" if kind == "mtp" else str(write_eagle3(tmp_path / "head.gguf"))
    exact = platform.machine() == "x86_64"
    outcome = run(library, model, 1, "begun", n_seq=3, exact=exact or "auto", draft=draft)
    for i, expected in enumerate(outcome.expected):
        assert outcome.found[i] == expected[: len(outcome.found[i])]
        assert outcome.found[i] + outcome.rest[i] == expected


def test_a_failed_decode_does_not_corrupt_the_draft_models_memory(
    library: Path, tmp_path: Path
) -> None:
    """The model drafts for itself, so drafts are right if its memory is."""
    model = write_dense(tmp_path / "random.gguf")
    exact = platform.machine() == "x86_64"
    outcome = run(library, model, 1, "begun", n_seq=3, exact=exact or "auto", draft=str(model))
    assert outcome.n_drafter_errors > 0
    assert outcome.right > 0.9
    for i, expected in enumerate(outcome.expected):
        assert outcome.found[i] == expected[: len(outcome.found[i])]
        assert outcome.found[i] + outcome.rest[i] == expected


def test_requests_in_a_shared_memory_are_retried_alone(library: Path, tmp_path: Path) -> None:
    model = WRITERS["dense"](tmp_path / "random.gguf")
    # There, prompts are also decoded together.
    options = {"n_seq": 3, "n_batch": 128, "exact": False, "kv_type": "f16"}
    outcome = run(library, model, 2, "start", **options)
    assert outcome.errors == [None] * 3
    assert list(map(len, outcome.found)) == list(map(len, outcome.expected))


def test_a_decode_that_fails_inside_a_tree_keeps_the_tokens(library: Path, tmp_path: Path) -> None:
    """For llama.cpp each branch is a sequence, so the tree fails where a chain does not."""
    model = WRITERS["dense"](tmp_path / "random.gguf")
    draft = str(write_dense(tmp_path / "draft.gguf", seed=9))
    exact = platform.machine() == "x86_64"
    outcome = run(library, model, 2, "begun", n_seq=1, exact=exact, spec_tree=3, draft=draft)
    for i, expected in enumerate(outcome.expected):
        assert "aborted the decode" in (outcome.errors[i] or "")
        assert 0 < len(outcome.found[i]) < len(expected)
        assert outcome.found[i] == expected[: len(outcome.found[i])]
        assert outcome.found[i] + outcome.rest[i] == expected


def test_a_device_error_reported_only_in_the_log_is_raised(library: Path) -> None:
    """On a GPU, decode returns before the computation ends."""
    script = f"""if True:
        import ctypes
        failing = ctypes.CDLL({str(library)!r}, ctypes.RTLD_GLOBAL)
        from specllama import DecodeError, SpecSession
        n = ctypes.c_int.in_dll(failing, "n_only_logged")
        options = dict(n_threads=1, n_gpu_layers=0, draft="ngram") | {EXACT!r}
        with SpecSession(**options) as session:
            expected = session.generate("def f(", max_tokens=20).tokens
            stream = session.stream("def f(", max_tokens=20)
            next(stream)
            n.value = 1
            try:
                for _ in stream: pass
            except DecodeError as error:
                print(error)
            n_kept = len(session.last.tokens)
            assert 0 < n_kept < 20
            assert session.last.tokens == expected[:n_kept]
            assert session.generate("def f(", max_tokens=20).tokens == expected
    """
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "The device failed in a decode (error: command buffer 0 failed).\n"
