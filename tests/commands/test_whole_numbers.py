"""Integers on command lines: ranges, and one line for a wrong value."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest
from specllama.__main__ import main
from specllama.commands.whole_numbers import UNTIL_FULL, whole


def test_whole_numbers_and_allowed_words_are_accepted() -> None:
    assert [whole(1, 64)(text) for text in ("1", "64", "+2", "007")] == [1, 64, 2, 7]
    assert [whole(-1)(text) for text in ("-1", str(2**31 - 1))] == [-1, 2**31 - 1]
    assert [whole()(text) for text in ("-5", str(2**64))] == [-5, 2**64]
    assert whole(1, 64, words={"auto": "auto"})("auto") == "auto"
    assert whole(1, words=UNTIL_FULL)("-1") is None


@pytest.mark.parametrize(
    "text", ["", "x", "1.5", "1e3", "1_000", " 1", "0x10", "\N{SUPERSCRIPT TWO}"]
)
def test_other_texts_are_refused_as_whole_numbers(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^must be a whole number, not '"):
        whole()(text)


def test_long_values_are_quoted_in_part() -> None:
    for wrong in ("9" * 10_000, "x" * 10_000):
        with pytest.raises(
            ArgumentTypeError, match=r"must be a whole number from 1 on, .*\.\.\."
        ) as caught:
            whole(1)(wrong)
        assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("alpha -n 0", "-n/--n-predict: must be a whole number from 1 on, not '0'"),
        ("alpha -t 513", "-t/--threads: must be a whole number from 0 to 512, not '513'"),
        ("alpha -ngl -2", "--gpu-layers: must be auto, all or a whole number from -1 on, not '-2'"),
        ("alpha --count 1", "--count: must be a whole number from 2 on, not '1'"),
        ("alpha --prompt-length 1", "--prompt-length: must be a whole number from 2 on, not '1'"),
        ("alpha --repeat 0", "--repeat: must be a whole number from 1 on, not '0'"),
        ("bench -n 2", "-n/--n-predict: must be a whole number from 8 on, not '2'"),
        ("bench --repeat 0", "--repeat: must be a whole number from 1 on, not '0'"),
        ("bench --texts 0", "--texts: must be a whole number from 1 on, not '0'"),
        ("bench --concurrency 2 1", "--concurrency: must be a whole number from 2 to 64, not '1'"),
        ("chat -n -2", "-n/--n-predict: must be -1 or a whole number from 0 on, not '-2'"),
        ("chat -c many", "-c/--ctx-size: must be a whole number from -1 "),
        ("chat --top-k many", "--top-k: must be a whole number from -1 "),
        ("corpus build -o x x --max-tokens 1e6", "--max-tokens: must be a whole number, not '1e6'"),
        ("demo -n 0", "-n/--n-predict: must be a whole number from 1 on, not '0'"),
        ("demo -n 9999999999", "-n/--n-predict: must be a whole number from 1 to 2147483647, not "),
        ("divergence -n 0", "-n/--n-predict: must be a whole number from 1 on, not '0'"),
        ("divergence --count 0", "--count: must be a whole number from 1 on, not '0'"),
        ("divergence -np 65", "--n-seq: must be a whole number from 1 to 64, not '65'"),
        ("divergence --spec-length auto", "must be a whole number from 1 to 64, not 'auto'"),
        ("serve -n 0", "-n/--n-predict: must be -1 or a whole number from 1 on, not '0'"),
        ("serve --port 70000", "--port: must be a whole number from 0 to 65535, not '70000'"),
        ("serve --max-queue -1", "--max-queue: must be a whole number from 0 on, not '-1'"),
        ("trace -n -2", "-n/--n-predict: must be -1 or a whole number from 0 on, not '-2'"),
        (
            "trace --spec-length 99",
            "--spec-length: must be auto or a whole number from 1 to 64, not '99'",
        ),
        (
            "trace --spec-tree on",
            "--spec-tree: must be auto, off or a whole number from 1 to 8, not 'on'",
        ),
    ],
)
def test_wrong_numbers_give_one_line_with_the_range(
    capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments.split())
    line = capsys.readouterr().err
    assert line.startswith(f"specllama {arguments.split()[0]}")
    assert said in line
    assert line.count("\n") == 1
