"""The executable spec-cli as a process: signals, and its output streams."""

from __future__ import annotations

import array
import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
import specllama
from prompts import PROMPTS
from specllama.commands.spec_cli import executable

EXACT = ["-kv", "q8_0", "-fa", "on", "-ngl", "0", "-t", "1", "--spec-length", "4"]
PROMPT = PROMPTS["module"]


def test_ctrl_c_keeps_the_text_and_gives_exit_code_130(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with out.open("wb") as stdout:
        process = subprocess.Popen(
            [executable(), *EXACT, "-p", PROMPT, "-n", "-1", "-c", "50000", "--stats"],
            stdout=stdout,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        while not out.stat().st_size and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.read_bytes().decode()
    assert b"rounds" in stderr  # statistics are shown all the same


def test_ctrl_c_at_any_moment_of_the_start_leaves_no_traceback() -> None:
    """While Python loads, while it starts the executable, and after."""
    script = "from specllama_light.command import spec_cli; print(flush=True); spec_cli()"
    for delay in (0.05, 0.1, 0.15, 0.2, 0.3):
        process = subprocess.Popen(
            [sys.executable, "-c", script, *EXACT, "-p", PROMPT, "-n", "-1", "-c", "50000"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        # -SIGINT: before the executable handles the signal.
        assert process.returncode in (130, -signal.SIGINT)
        assert b"Traceback" not in stderr


def test_an_ignored_ctrl_c_does_not_end_spec_cli() -> None:
    """As in the background of a script."""
    process = subprocess.Popen(
        [executable(), *EXACT, "-p", PROMPT, "-n", "1000", "-c", "4000"],
        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("extra", [[], ["--json"], ["--help"], ["--version"], ["--list-devices"]])
def test_unwritable_output_of_spec_cli_gives_exit_code_1(extra: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(
            [executable(), *EXACT, "-p", PROMPT, "-n", "20", *extra],
            stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    assert process.returncode == 1
    assert b"cannot be written" in process.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="what a process does is read from /proc")
def test_ctrl_c_ends_the_wait_for_a_prompt() -> None:
    process = subprocess.Popen(
        [executable(), "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(b"x")
    process.stdin.flush()
    unread = array.array("i", [1])
    state = "R"
    while unread[0] > 0 or state != "S":  # the input was read, and the program waits for more
        time.sleep(0.01)
        fcntl.ioctl(process.stdin, termios.FIONREAD, unread)
        state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    process.communicate()


def test_spec_cli_prints_colours_and_a_legend_on_a_terminal() -> None:
    """It also gets a last newline, for the shell's prompt."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [executable(), *EXACT, "-p", PROMPT, "-n", "40"],
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            data = os.read(master, 4096)
        except OSError:  # the terminal's other end is closed
            break
        if not data:
            break
        shown += data
    os.close(master)
    assert process.wait() == 0
    assert b"\x1b[32m" in shown
    assert b"accepted by the model" in shown
    assert shown.endswith(b"\n")


def test_console_script_runs_the_executable() -> None:
    script = Path(specllama._core.__file__).parents[4] / "bin" / "spec-cli"
    if not script.exists():
        pytest.skip(f"scripts are not installed at {script.parent}")
    process = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert process.stdout.startswith("spec-cli ")
    assert subprocess.run([script, "--bad"], capture_output=True, check=False).returncode == 2


def test_a_closed_reader_ends_spec_cli_silently() -> None:
    script = Path(specllama._core.__file__).parents[4] / "bin" / "spec-cli"
    if not script.exists():
        pytest.skip(f"scripts are not installed at {script.parent}")
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [script, *EXACT, "-p", PROMPT, "-n", "20"],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        timeout=120,
    )
    os.close(writing)
    assert process.returncode == -signal.SIGPIPE
    assert process.stderr == b""
