"""Options of other programs, mistyped ones, and models without -m: one line says what to do."""

from __future__ import annotations

import pytest
from specllama.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("serve -ctk q8_0", "-ctk is no option here: say -kv TYPE, for keys and values alike"),
        ("chat --cache-type-v=q8_0", "--cache-type-v is no option here: say -kv TYPE"),
        (
            "serve -m x.gguf --jinja",
            "--jinja is no option here: chat templates are always Jinja's; leave it out",
        ),
        ("serve -tb 4", "there is no option -tb"),
        ("serve model.gguf", "what is model.gguf for? A model is named with -m model.gguf"),
        ("chat hello", "what is 'hello' for?"),
        ("serve --ctx 4096", "there is no option --ctx; did you mean --ctx-size?"),
        ("serve --draft 16", "argument --draft: invalid choice: '16'"),
        ("chat --draft none -md x.gguf", "not allowed with argument"),
        ("serve --draft-max 16", "--draft-max is no option here: say --spec-length N"),
    ],
)
def test_foreign_options_and_missing_models_give_one_line_with_the_cure(
    capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments.split())
    line = capsys.readouterr().err
    command = arguments.split()[0]
    assert line.startswith(f"specllama {command}: ")
    assert said in line
    assert line.endswith(f"; see specllama {command} --help.\n")
    assert line.count("\n") == 1
