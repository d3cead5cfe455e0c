"""Arguments that are refused before a command starts."""

from __future__ import annotations

import pytest
from specllama.__main__ import main


@pytest.mark.parametrize(
    "arguments",
    [
        ["alpha", "-m", ""],
        ["bench", "--concurrency", "2", "-m", ""],
        ["bench", "--concurrency", "2", "-md="],
        ["chat", "-u", "http://localhost", "--target-key", ""],
        ["chat", "--chat-template-file", ""],
        ["corpus", "build", "-m", "", "-o", "c", "x"],
        ["corpus", "build", "-o", "c", ""],
        ["corpus", "build", "-o", "", "x"],
        ["demo", "--corpus", ""],
        ["divergence", "-m", ""],
        ["divergence", "-f", ""],
        ["models", ""],
        ["serve", "--alias", ""],
        ["trace", "-p", "x", "-md", ""],
    ],
)
def test_empty_values_of_arguments_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty value most likely comes from an unset variable."""
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    error = capsys.readouterr().err
    assert "is empty; give a value, or leave it out" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("arguments", [["chat", "-p"], ["chat", "-sys"], ["serve", "-a"]])
def test_values_of_arguments_that_are_not_utf_8_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*arguments, "\udcff"])
    error = capsys.readouterr().err
    assert f"argument {arguments[-1]}/--" in error
    assert "is not UTF-8" in error
    assert error.count("\n") == 1
