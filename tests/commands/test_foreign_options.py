"""Options of other programs, mistyped ones, and models without -m."""

from __future__ import annotations

import pytest
from specllama import _core
from specllama.__main__ import main
from specllama.commands.foreign_options import translated

KNOWN = {**_core.spec_cli_flags(), "--n-cpu-moe": True, "-": False}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("serve -ctv q8_0 --numa distribute", "--numa is not supported: start the program with"),
        ("serve --mirostat 2", "--mirostat is not supported: use the other sampling"),
        ("serve -C ff", "-C is not supported: start the program with"),
        ("serve -xb 4", "there is no option -xb; see"),
        ("bench -np 2", "-np is an option of specllama serve and specllama divergence, not of"),
        ("trace -p x --port 80", "--port is an option of specllama serve, not of this program"),
        ("models -fa on", "-fa is an option of spec-cli and specllama chat, not of this program"),
        ("serve model.gguf", "unexpected argument model.gguf; give a model with -m model.gguf"),
        ("chat hello", "unexpected argument 'hello'"),
        ("serve --ctx 4096", "there is no option --ctx; did you mean --ctx-size?"),
        ("serve --ctx-siz 4096", "there is no option --ctx-siz; did you mean --ctx-size?"),
        ("serve --draft lots", "argument --draft: invalid choice: 'lots'"),
        ("chat --draft none -md x.gguf", "not allowed with argument"),
        ("corpus build -o x --speed x", "--speed is an option of specllama alpha, not of this"),
    ],
)
def test_unknown_options_give_one_line_with_a_remedy(
    capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments.split())
    line = capsys.readouterr().err
    command = arguments.split()[0]
    assert line.startswith(f"specllama {command}")
    assert said in line
    assert line.count("\n") == 1


def test_all_unknown_options_are_refused_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "serve --jinja -cb --ssl-key-file k -i --samplers x -ub 512 --frob"
    with pytest.raises(SystemExit, match="2"):
        main(arguments.split())
    notice, error = capsys.readouterr().err.splitlines()
    assert notice == "specllama serve: --jinja, -cb, -ub have no effect."
    for name in ("--ssl-key-file", "-i", "--samplers"):
        assert f"{name} is not supported: " in error
    assert "there is no option --frob" in error


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("-ctk q8_0 -ctv q8_0", "--kv-type q8_0"),
        ("-ctk q8_0 -c 512 -ctv q5_1", "-c 512 --kv-type q8_0/q5_1"),
        ("-ctk=q8_0", "--kv-type q8_0/f16"),
        ("-ctvd q8_0", "--kv-type-draft f16/q8_0"),
        ("--draft-max 16", "--spec-length 16"),
        ("--draft 16", "--spec-length 16"),
        ("--draft ngram", "--draft ngram"),
        ("--spec-type draft-mtp", "--draft mtp"),
        ("--spec-type ngram-simple --spec-draft-n-min 2", ""),
        ("--mlock", "--load-mode mmap+mlock"),
        ("--mlock --no-mmap", "--load-mode mlock"),
        ("--no-mmap -c 9", "-c 9 --load-mode none"),
        ("-cmoe", "--n-cpu-moe 999"),
        ("-hf a/b --hf-file c.gguf", "-hf a/b/c.gguf"),
        ("--rope-freq-scale 0.25", "--rope-scale 4"),
        ("-co on --reverse-prompt x", "--color on --stop x"),
        ("-ub 512 --jinja -p --mlock", "-p --mlock"),  # a prompt that looks like an option
        ("-c=512 -", "-c=512 -"),
    ],
)
def test_options_of_llama_cpp_are_translated_to_ours(typed: str, expected: str) -> None:
    assert translated(typed.split(), KNOWN, "spec-cli") == (expected.split(), [])
