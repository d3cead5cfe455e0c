"""Arguments of other libraries in a call of SpecSession."""

from __future__ import annotations

from typing import Any

import pytest
from specllama import ModelError, SpecSession
from specllama.__main__ import main


@pytest.mark.parametrize(
    ("argument", "advice"),
    [
        ("model_path", "the model is the first argument"),
        ("n_thread", "give n_threads="),
        ("type_k", "give kv_type="),
        ("chat_format", "the model's own template is used"),
        ("seed", r"an option of each call, as in generate\(prompt, seed=...\)"),
        ("n_ctxx", r"did you mean n_ctx\?"),
        ("zzz", r"see help\(SpecSession\)"),
    ],
)
def test_arguments_of_other_libraries_are_translated(argument: str, advice: str) -> None:
    options: dict[str, Any] = {argument: 1}
    with pytest.raises(TypeError, match=f"no argument '{argument}': .*{advice}"):
        SpecSession("model.gguf", **options)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("llama3", "`specllama models` lists those"),
        ("llama3:8b", "`specllama models` lists those"),
        ("Qwen/Qwen2.5-0.5B-Instruct-GGUF", "name it hf://Qwen/Qwen2.5-0.5B-Instruct-GGUF, or use"),
        ("user/repo:Q4_K_M", "name it hf://user/repo:Q4_K_M, or use -hf"),
        ("https://example.com/model.gguf", "It looks like a URL"),
        ("missing.gguf", "give the path of a GGUF file"),
    ],
)
def test_names_of_missing_files_get_advice_by_their_form(name: str, advice: str) -> None:
    with pytest.raises(ModelError, match=f"There is no file {name}.*{advice}"):
        SpecSession(name)


def test_a_mistyped_drafter_gets_the_names_of_drafters() -> None:
    with pytest.raises(ModelError, match=r'no file bob\..*; other drafters are "auto", "ngr'):
        SpecSession(draft="bob")


def test_mistyped_commands_get_a_suggestion_and_no_command_prints_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["seve"])
    assert ended.value.code == 2
    assert "there is no command 'seve'; did you mean serve?" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["zzz"])
    assert "one of chat, serve, models" in capsys.readouterr().err
    assert main([]) == 0
    assert "serve a model over HTTP" in capsys.readouterr().out
