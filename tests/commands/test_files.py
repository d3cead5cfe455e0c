"""Files that users name: only regular files are read and replaced."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from processes import run_script
from specllama import ArgumentError, SpecllamaError, _files


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def replace(path: Path, text: str = "new") -> None:
    with _files.replacing(path) as fresh:
        fresh.write_text(text)


def test_replacing_a_file_writes_all_of_it_and_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for text in ("one", "two"):
        replace(path, text)
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("there", [True, False])
def test_replacing_a_link_replaces_its_target_file(tmp_path: Path, there: bool) -> None:
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "file"
    if there:
        path.write_text("old")
    link, again = tmp_path / "link", tmp_path / "again"
    link.symlink_to(Path("folder") / "file")
    again.symlink_to(link)
    replace(again)
    assert again.is_symlink()
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a file has a name from the start")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_process_killed_while_writing_leaves_the_old_file(tmp_path: Path, number: int) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom specllama import _files\n"
        "with _files.replacing(Path(sys.argv[1])) as fresh:\n"
        "    fresh.write_text('half')\n    print('writing', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        process.send_signal(number)
        process.communicate(timeout=60)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "old"


def test_a_full_disk_names_the_users_file_and_leaves_nothing(tmp_path: Path) -> None:
    """A limit on file sizes stands in for a full disk."""
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("some words and more words\n" * 200)
    script = f"""
import os, resource
from pathlib import Path
from specllama import SpecllamaError, SpecSession, _files
from specllama.formats import corpus
from specllama.session import BUNDLED_MODEL

folder = Path({str(tmp_path)!r})
(folder / "old.html").write_text("old")
session = SpecSession(draft=None, n_threads=1, n_gpu_layers=0)
session.generate("some words", max_tokens=5)
trace = session.generate("some words", max_tokens=5, trace=True).trace.to_html()
resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
for write in (
    lambda: _files.write(str(folder / "new.html"), trace),
    lambda: _files.write(str(folder / "old.html"), trace),
    lambda: session.save_state(folder / "state"),
    lambda: corpus.build(BUNDLED_MODEL, [folder / "texts" / "a.txt"], folder / "some.corpus"),
):
    try:
        write()
    except SpecllamaError as error:
        print(error)
print(sorted(os.listdir(folder)), (folder / "old.html").read_text())
"""
    status, printed, complaint = run_script(script)
    assert status == 0, complaint
    names = ("new.html", "old.html", "state", "some.corpus")
    assert printed.splitlines() == [
        *(f"{tmp_path / name} cannot be written: File too large." for name in names),
        "['old.html', 'texts'] old",
    ]


def test_folders_pipes_and_sockets_are_not_replaced(tmp_path: Path, pipe: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "link").symlink_to(pipe)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for name in ("pipe", "link", "loop", "socket"):
            before = (tmp_path / name).lstat()
            with pytest.raises(
                SpecllamaError, match=f"{name} cannot be written: it is not a regular file"
            ):
                replace(tmp_path / name)
            assert (tmp_path / name).lstat() == before
    assert len(list(tmp_path.iterdir())) == 4


def test_a_device_is_not_replaced(tmp_path: Path) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o600 | 0o020000, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")
    with pytest.raises(SpecllamaError, match="cannot be written: it is not a regular file"):
        replace(device)
    assert device.is_char_device()
    with pytest.raises(ArgumentError, match="cannot be read: it is not a regular file"):
        _files.read(device)


def test_named_pipes_are_refused_without_waiting(pipe: Path) -> None:
    for read in (_files.read, _files.read_text, _files.read_prompt):
        with pytest.raises(ArgumentError, match="pipe cannot be read: it is not a regular file"):
            read(str(pipe))
    with pytest.raises(SpecllamaError, match="pipe cannot be written: it is not a regular file"):
        _files.check_writable(str(pipe))


def test_pipes_from_the_shell_are_read_and_written() -> None:
    """As in -f <(command) and -o >(command)."""
    script = (
        "from specllama import _files; import sys\n"
        "text = _files.read_prompt(sys.argv[1])\n"
        "_files.check_writable('/dev/stdout')\n"
        "_files.write('/dev/stdout', text.upper())\n"
    )
    for name in ("/dev/stdin", "/dev/fd/0", "-"):
        process = subprocess.run(
            [sys.executable, "-c", script, name],
            input="said\n", capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (process.stdout, process.stderr) == ("SAID", "")


def test_endless_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "from specllama import _files; import sys; _files.read_prompt(sys.argv[1])"
    for name, said in (("/dev/stdin", "/dev/stdin"), ("-", "standard input")):
        with Path("/dev/zero").open("rb") as endless:
            process = subprocess.run(
                [sys.executable, "-c", script, name],
                stdin=endless, capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
        assert f"{said} cannot be read: it has more than 100 MB." in process.stderr
    (tmp_path / "file").write_text("four")
    monkeypatch.setattr(_files, "_MOST", 4)
    assert _files.read(tmp_path / "file") == b"four"
    monkeypatch.setattr(_files, "_MOST", 3)
    with pytest.raises(ArgumentError, match="file cannot be read: it has more than 100 MB"):
        _files.read(tmp_path / "file")


def test_text_files_are_read_with_converted_line_ends(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\r\nb\rc\n")
    assert _files.read_text(tmp_path / "file") == "a\nb\nc\n"
    assert _files.read_prompt(str(tmp_path / "file")) == "a\r\nb\rc"


def test_replacing_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace(path)
    for mode in (0o600, 0o444):
        path.chmod(mode)
        replace(path)
        assert path.stat().st_mode & 0o777 == mode


def test_prompt_files_lose_their_byte_order_mark_and_last_line_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "prompt"
    for content in (b"a", b"a\n", b"\xef\xbb\xbfa\n", b"a\r\n"):
        path.write_bytes(content)
        assert _files.read_prompt(str(path)) == "a"
    assert capsys.readouterr().err == ""
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    assert _files.read_prompt(str(path)) == "a\r\nb"
    assert capsys.readouterr().err.startswith(f"Note: {path} has Windows line ends")
    assert _files.read_text(path) == "a\nb\n"
