"""AMX is tried in a child process first; here, programs that end in every way replace the child."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import llama_cpp
import pytest
import specllama
from specllama import ModelError, SpecSession
from specllama._core import cpu_kernels, has_amx, try_amx

ANSWER = "all is well\n"
# Without a sanitizer's handler.
DIES = (
    "import os, signal; signal.signal(signal.{signal}, signal.SIG_DFL); "
    "os.kill(os.getpid(), signal.{signal})"
)


def tried(program: str, *, folder: Path | str = "", seconds: float = 20) -> tuple[bool, str]:
    """Return the outcome with a Python program as the child."""
    return try_amx(
        command=[sys.executable, "-I", "-c", program],
        expected=ANSWER,
        libraries="",
        seconds=seconds,
        key="" if folder == "" else "a library",
        folder=str(folder),
    )


def only_with_amx(program: str) -> str:
    return (
        "import os\n"
        f"if os.environ['SPECLLAMA_AMX'] == 'on': {program}\n"
        f"else: print({ANSWER.strip()!r})"
    )


def test_amx_is_used_if_the_child_answers() -> None:
    assert tried(f"print({ANSWER.strip()!r})") == (True, "")


def test_amx_is_left_out_if_the_child_dies_only_with_it() -> None:
    for signal in ("SIGSEGV", "SIGILL", "SIGABRT"):
        works, notice = tried(only_with_amx(DIES.format(signal=signal)))
        assert not works
        assert notice.startswith("AMX is not used, because a small decode with it crashes: ")
        assert "-fno-tree-dse" in notice
        assert "\n" not in notice


@pytest.mark.parametrize("signal", ["SIGSEGV", "SIGILL"])
def test_an_error_is_raised_if_the_child_dies_without_amx_too(signal: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not support this processor") as caught:
        tried(DIES.format(signal=signal), folder=tmp_path)
    assert "\n" not in str(caught.value)
    assert "llama-cpp-python==" in str(caught.value)
    assert [*tmp_path.iterdir()] == []  # not cached, so that another library is tried


@pytest.mark.parametrize(
    ("program", "seconds", "how"),
    [
        ("print('rubbish')", 60, "gives a wrong answer"),
        ("print(end='')", 60, "gives a wrong answer"),
        ("raise SystemExit(3)", 60, "fails"),
        ("import sys; sys.stdout.close(); import time; time.sleep(60)", 3, "does not end in time"),
        ("print('x' * 10_000_000)", 60, "gives a wrong answer"),
    ],
)
def test_amx_is_left_out_if_the_child_answers_wrongly(
    program: str, seconds: float, how: str
) -> None:
    works, notice = tried(program, seconds=seconds)
    assert not works
    assert f"with it {how};" in notice


def test_amx_is_left_out_if_the_child_hangs() -> None:
    works, notice = tried("import time; time.sleep(60)", seconds=0.5)
    assert not works
    assert "does not end" in notice


def test_amx_is_left_out_if_the_child_cannot_be_started(tmp_path: Path) -> None:
    works, notice = try_amx(
        command=[str(tmp_path / "none")], expected="", libraries="", seconds=5, key="", folder=""
    )
    assert not works
    assert "cannot be started" in notice


@pytest.mark.skipif(sys.platform != "linux", reason="AMX is used on Linux only")
def test_the_amx_child_finds_the_libraries_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `pip install --target`: the child takes the libraries that this process has."""
    (tmp_path / "bin").mkdir()
    program = shutil.copy(Path(specllama.__file__).parent / "bin/spec-cli", tmp_path / "bin")
    options: dict[str, Any] = {
        "command": [str(program), "--version"], "expected": "spec-cli",
        "seconds": 20, "key": "", "folder": "",
    }  # fmt: skip
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    works, notice = try_amx(libraries="", **options)
    assert not works
    assert "fails" in notice
    libraries = Path(llama_cpp.__file__).parent / "lib"
    assert try_amx(libraries=str(libraries), **options) == (True, "")


@pytest.mark.skipif(not has_amx(), reason="no AMX here, or none in llama.cpp")
def test_a_package_in_another_folder_uses_the_same_amx_kernels(tmp_path: Path) -> None:
    shutil.copytree(Path(specllama.__file__).parent, tmp_path / "specllama")
    program = "from specllama import SpecSession; print(SpecSession(n_threads=1).cpu_kernels)"
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "SPECLLAMA_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert "AMX is not used" not in found.stderr
    with SpecSession(n_threads=1) as session:
        assert found.stdout.strip() == session.cpu_kernels


def test_the_outcome_of_the_amx_child_is_cached(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "when needed"
    assert tried(f"print({ANSWER.strip()!r})", folder=folder)[0]
    assert tried("print('rubbish')", folder=folder) == (True, "")  # the child is not run
    other = tmp_path / "other"
    works, notice = tried("print('rubbish')", folder=other)
    assert not works
    # The notice is repeated, but AMX is not tried again.
    assert tried(f"print({ANSWER.strip()!r})", folder=other) == (works, notice)
    for file in (*folder.iterdir(), *other.iterdir()):
        file.write_text("another library\nworks\n")
    assert not tried("print('rubbish')", folder=folder)[0]


def test_amx_is_tried_without_a_writable_cache_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below", Path("/proc/none")):
        assert tried(f"print({ANSWER.strip()!r})", folder=folder)[0]
        assert not tried("print('rubbish')", folder=folder)[0]
    assert file.read_text() == ""


def test_cpu_kernels_name_amx_if_present(bundled_model: Path) -> None:
    assert cpu_kernels().endswith("plain")
    assert ("AMX" in cpu_kernels()) == has_amx()
    with SpecSession(bundled_model, None, n_ctx=64, n_gpu_layers=0) as session:
        assert session.cpu_kernels.endswith("%")
        assert ("AMX" in session.cpu_kernels) == cpu_kernels().startswith("AMX,")
    devices = subprocess.run(
        [
            sys.executable, "-c", "from specllama_light.command import spec_cli; spec_cli()",
            "--list-devices",
        ],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert f"CPU kernels: {cpu_kernels()}" in devices


def test_pipes_and_devices_in_the_amx_cache_folder_are_replaced(tmp_path: Path) -> None:
    assert tried(f"print({ANSWER.strip()!r})", folder=tmp_path)[0]
    (file,) = tmp_path.iterdir()
    for put in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        file.unlink()
        put(file)
        assert tried(f"print({ANSWER.strip()!r})", folder=tmp_path)[0]
        assert file.read_text().endswith("works\n")
