"""The plugin of the command llm, in the real llm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from specllama import SpecSession
from specllama.errors import ArgumentError, ModelError
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL
from specllama_light import llm_plugin
from specllama_light.default_model import installed_model
from specllama_light.llm_plugin import LocalModel

PROMPT = "def fibonacci(n):\n    a, b = 0, 1\n"
SMOL = installed_model()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with a cache of two models of the same name, and other files."""
    for name in ("HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "llm"))
    for folder, model in (("a", BUNDLED_MODEL), ("b", BUNDLED_DRAFT)):
        (cache := tmp_path / ".cache/llama.cpp" / folder).mkdir(parents=True)
        (cache / "code.gguf").symlink_to(model)
    (cache / "mmproj-code.gguf").write_bytes(b"")
    return tmp_path


def bundled() -> LocalModel:
    return LocalModel("bundled", BUNDLED_MODEL)


def smollm2() -> LocalModel:
    assert SMOL is not None
    return LocalModel("smol", SMOL)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "llm", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LLM_LOAD_PLUGINS": "specllama"},
    )


def test_max_tokens_0_generates_nothing_in_the_llm_plugin() -> None:
    """0 is not the default, which is as many tokens as fit."""
    assert bundled().prompt(PROMPT, threads=1, max_tokens=0).text() == ""


def test_the_llm_plugin_registers_the_models_of_the_caches(home: Path) -> None:
    found: dict[str, Any] = {}
    llm_plugin.register_models(lambda model: found.update({model.model_id: model}))
    other = home / ".cache/llama.cpp/b/code.gguf"
    assert SMOL is not None
    assert set(found) == {f"specllama/{SMOL.stem}", "specllama/code", f"specllama/{other}"}
    answer = found["specllama/code"].prompt(PROMPT, threads=1, max_tokens=3).text()
    with SpecSession(n_threads=1) as session:
        assert answer == session.generate(PROMPT, max_tokens=3).text


def test_the_llm_plugin_is_found_without_loading_specllama() -> None:
    (entry,) = entry_points(group="llm", name="specllama")
    assert entry.load() is llm_plugin
    code = "import sys; from specllama_light import llm_plugin; print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    modules = set(process.stdout.split())
    assert "llm" in modules
    assert not {"specllama", "llama_cpp"} & modules


def test_a_model_without_a_template_continues_the_prompt() -> None:
    model = bundled()
    with SpecSession(draft=None, n_threads=1) as session:
        expected = session.generate(PROMPT, max_tokens=24)
        drawn = session.generate(PROMPT, max_tokens=8, temperature=1, seed=3).text
    for options in ({}, {"draft": "none"}, {"draft": "ngram"}, {"draft": str(BUNDLED_DRAFT)}):
        response = model.prompt(PROMPT, threads=1, max_tokens=24, **options)
        assert response.text() == expected.text, options
        assert response.input_tokens == expected.stats.prompt_tokens
        assert response.output_tokens == 24
        assert set(response.token_details) == {"drafted", "accepted"}
    assert model.prompt(PROMPT, threads=1, max_tokens=8, temperature=1, seed=3).text() == drawn
    assert model.prompt(PROMPT, threads=1, max_tokens=24, stream=False).text() == expected.text


def test_the_llm_plugin_streams_answers() -> None:
    response = bundled().prompt(PROMPT, threads=1, max_tokens=12, draft="none")
    assert len(list(response)) > 3


def test_the_llm_plugin_keeps_a_session_while_its_options_stay_the_same() -> None:
    model = bundled()
    model.prompt(PROMPT, threads=1, max_tokens=2).text()
    first = model._session
    model.prompt(PROMPT, threads=1, max_tokens=2).text()
    assert model._session is first
    model.prompt(PROMPT, threads=1, max_tokens=2, draft="none").text()
    assert first is not None
    assert model._session is not first
    assert first.last is not None
    with pytest.raises(Exception, match="closed"):
        first.generate(PROMPT)


def test_an_abandoned_answer_does_not_block_the_next() -> None:
    model = bundled()
    chunks = iter(model.prompt(PROMPT, threads=1, max_tokens=100))
    assert next(chunks) is not None
    del chunks
    assert model.prompt(PROMPT, threads=1, max_tokens=2).text()


def test_the_llm_plugin_answers_conversations_like_a_session() -> None:
    options: dict[str, Any] = {"threads": 1, "max_tokens": 6, "draft": "none"}
    conversation = smollm2().conversation()
    first = conversation.prompt("hello", system="Be brief.", **options)
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
    ]
    with SpecSession(SMOL, None, n_threads=1) as session:
        answer = session.chat(messages, max_tokens=6).text
        assert first.text() == answer
        second = conversation.prompt("My name is Ann.", **options)
        messages += [
            {"role": "assistant", "content": answer},
            {"role": "user", "content": "My name is Ann."},
        ]
        assert second.text() == session.chat(messages, max_tokens=6).text
        assert second.input_tokens == len(session.render_chat(messages))


def test_schemas_constrain_the_answer_of_the_llm_plugin() -> None:
    schema = {
        "type": "object",
        "properties": {"good": {"type": "boolean"}},
        "required": ["good"],
    }
    answer = bundled().prompt(PROMPT, schema=schema, threads=1).text()
    assert isinstance(json.loads(answer)["good"], bool)


def test_bad_options_and_missing_models_raise_our_exceptions(tmp_path: Path) -> None:
    for name, value in (("temperature", -1), ("max_tokens", -2)):
        with pytest.raises(ArgumentError, match=f"{name} must be .*, not {value}"):
            bundled().prompt(PROMPT, **{name: value}).text()
    for model in (LocalModel("gone", tmp_path / "gone.gguf"), bundled()):
        with pytest.raises(ModelError, match="There is no file"):
            model.prompt(PROMPT, draft="/nowhere.gguf").text()


def test_llm_command_generates_and_reports_usage() -> None:
    arguments = [
        "-m",
        "specllama/code",
        "--usage",
        "-o",
        "threads",
        "1",
        "-o",
        "max_tokens",
        "4",
        PROMPT,
    ]
    process = run(*arguments)
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip()
    assert "4 output" in process.stderr
    process = run(*arguments, "-o", "temperature", "-1")
    assert (process.returncode, process.stdout) == (1, "")
    assert process.stderr == "Error: temperature must be 0 or more (0: greedy), not -1.\n"
