"""A target on a real SGLang server on a CPU. `make test-sglang` creates its environment."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf
import httpx
import pytest
from prompts import PROMPTS
from rewriting import rewrite
from specllama import SpecSession
from specllama.remote.link import Link
from specllama.remote.sglang.generate import Generate
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL

PYTHON = os.environ.get("SPECLLAMA_SGLANG")
RUN = Path(__file__).parents[1] / "support" / "sglang" / "run_sglang.py"
PATIENCE = 600.0
"""Seconds until the server must answer; on an idle processor it takes 40."""
N = 24
FLOAT32: dict[str, Any] = {"n_gpu_layers": 0, "kv_type": "f32", "flash_attn": False}
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "drawn": {"temperature": 0.8, "top_k": 20, "seed": 7},
}

pytestmark = pytest.mark.skipif(not PYTHON, reason="SPECLLAMA_SGLANG names no Python with SGLang")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled model, converted for SGLang."""
    made = tmp_path_factory.mktemp("sglang")
    subprocess.run([str(PYTHON), RUN, "convert", BUNDLED_MODEL, made], check=True)
    return made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """The server's address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command: list[Any] = [PYTHON, RUN, "serve", "--model-path", folder, "--port", str(port)]
    command += ["--host", "127.0.0.1", "--device", "cpu", "--dtype", "float32"]
    # Without the limit of tokens it would take 15 GB.
    command += ["--max-total-tokens", "8192", "--max-running-requests", "8"]
    command += ["--skip-server-warmup"]
    address = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, start_new_session=True) as server:
        try:
            _wait(server, f"{address}/v1/models")
            yield address
        finally:
            os.killpg(server.pid, signal.SIGKILL)  # its children, too


def _wait(server: subprocess.Popen[bytes], address: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert server.poll() is None
        try:
            if httpx.get(address, timeout=PATIENCE).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise TimeoutError(address)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpecSession]:
    """A local session with the model in float32. With other weights llama.cpp rounds activations,
    too."""
    path = tmp_path_factory.mktemp("float32") / "target.gguf"
    tensors = {
        one.name: gguf.quants.dequantize(one.data, one.tensor_type)
        for one in gguf.GGUFReader(BUNDLED_MODEL).tensors
    }
    rewrite(BUNDLED_MODEL, path, {}, tensors)
    with SpecSession(path, None, n_threads=1, **FLOAT32) as session:
        yield session


@pytest.fixture
def remote(url: str) -> Iterator[Callable[..., SpecSession]]:
    """Opens sessions at the server, and closes them after the test."""
    opened: list[SpecSession] = []

    def open_one(draft: Any, **options: Any) -> SpecSession:
        given = {"target": f"sglang+{url}", "tokenizer": BUNDLED_MODEL, "n_threads": 1} | options
        opened.append(SpecSession(draft=draft, **given))
        return opened[-1]

    yield open_one
    for session in opened:
        session.close()


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("draft", [None, "ngram", BUNDLED_DRAFT], ids=["none", "ngram", "model"])
def test_an_sglang_server_gives_the_tokens_of_a_local_session(
    remote: Callable[..., SpecSession], local: SpecSession, draft: Any, options: dict[str, Any]
) -> None:
    session = remote(draft)
    for name in ("module", "english", "one token"):
        expected = local.generate(PROMPTS[name], max_tokens=N, logprobs=2, **options)
        found = session.generate(PROMPTS[name], max_tokens=N, logprobs=2, **options)
        assert (found.tokens, found.text) == (expected.tokens, expected.text)
        assert [one.token for one in found.logprobs] == expected.tokens
        for ours, theirs in zip(found.logprobs, expected.logprobs, strict=True):
            assert ours.logprob == pytest.approx(theirs.logprob, abs=0.01)


def test_an_sglang_server_answers_several_prompts_at_once(
    remote: Callable[..., SpecSession], local: SpecSession
) -> None:
    prompts = [PROMPTS[name] for name in ("module", "function", "english", "json")]
    expected = [local.generate(prompt, max_tokens=N).tokens for prompt in prompts]
    session = remote("ngram", n_seq=2)
    found = session.generate(prompts, max_tokens=N)
    assert [one.tokens for one in found] == expected


def test_an_sglang_server_reports_its_vocabulary_size_and_survives(
    remote: Callable[..., SpecSession], url: str
) -> None:
    """A token id beyond it would crash the server."""
    link = Link(url, None, PATIENCE, kind="an SGLang")
    n_vocab = gguf.GGUFReader(BUNDLED_MODEL).fields["tokenizer.ggml.tokens"].contents()
    assert Generate(link).limit(len(n_vocab) + 100) == len(n_vocab)
    link.close()
    assert len(remote(None).generate(PROMPTS["module"], max_tokens=2).tokens) == 2
