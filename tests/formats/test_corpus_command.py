"""Building corpora: which files are read, and which file is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from prompts import PROMPTS
from session_options import Open
from specllama import ArgumentError, ModelError
from specllama.__main__ import main
from specllama._core import CorpusBuilder, Tokenizer
from specllama.formats import corpus
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL


def test_corpus_build_finds_text_files_in_folders(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    (folder / "inner").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    contents: dict[str, bytes] = {
        "inner/new.py": b"import os\n" * 20,
        "old.py": "caf\u00e9 = 1\n".encode() * 30,
        ".hidden/x.py": b"hidden = 1\n",
        ".dot.py": b"hidden = 2\n",
        "notes.txt": b"some notes\n",
        "binary.py": b"\x7fELF\0\0\1",
        "latin.py": "caf\u00e9".encode("latin-1"),
        "empty.py": b"",
    }
    for i, (name, content) in enumerate(contents.items()):
        (folder / name).write_bytes(content)
        os.utime(folder / name, (1e9 - i, 1e9 - i))
    (folder / "again.py").symlink_to(folder / "old.py")
    (folder / "nowhere.py").symlink_to(folder / "none")
    files = corpus.find_files([folder, folder / "old.py"], ["*.py"])
    names = [path.name for path in files]
    assert names[0] == "new.py"
    assert names[1] in ("old.py", "again.py")
    assert set(names[2:]) == {"binary.py", "latin.py", "empty.py"}
    assert len(corpus.find_files([folder])) == len(files) + 1

    built = corpus.build(BUNDLED_MODEL, files, tmp_path / "c")
    assert (built.n_texts, built.n_skipped, built.n_left_out) == (2, 2, 0)
    tokenizer = Tokenizer(str(BUNDLED_MODEL))
    builder = CorpusBuilder(1 << 20)
    for name in ("inner/new.py", "old.py"):
        builder.append(tokenizer.tokenize(contents[name].decode(), add_special=False))
        builder.end_text()
    builder.write(str(tmp_path / "d"), tokenizer.n_vocab, tokenizer.fingerprint)
    assert (tmp_path / "c").read_bytes() == (tmp_path / "d").read_bytes()
    small = corpus.build(BUNDLED_MODEL, files, tmp_path / "c", max_tokens=20)
    assert (small.n_texts, small.n_tokens, small.n_left_out) == (1, 20, 4)


def test_the_corpus_tokenizer_equals_the_sessions(open_session: Open) -> None:
    session = open_session()
    tokenizer = Tokenizer(str(BUNDLED_MODEL))
    assert tokenizer.n_vocab == session.n_vocab
    for text in PROMPTS.values():
        assert tokenizer.tokenize(text) == session.tokenize(text)
        without = tokenizer.tokenize(text, add_special=False)
        assert without == session.tokenize(text, add_special=False)
    assert tokenizer.fingerprint == Tokenizer(str(BUNDLED_DRAFT)).fingerprint
    with pytest.raises(ModelError, match=r"no file none\.gguf"):
        Tokenizer("none.gguf")


def test_corpus_command_builds_and_describes_a_corpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, path = tmp_path / "a.py", tmp_path / "my.corpus"
    source.write_text("def f(x):\n    return x\n" * 10)
    (tmp_path / "b.py").write_bytes(b"\0")
    (tmp_path / "empty").mkdir()
    os.mkfifo(pipe := tmp_path / "empty" / "pipe")
    assert main(["corpus", "build", "-o", str(path), str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "tokens of 1 files" in out
    assert "1 files skipped" in out
    assert main(["corpus", "info", str(path)]) == 0
    assert f"of 1 texts, {path.stat().st_size / 1e6:.1f} MB" in capsys.readouterr().out
    before = path.read_bytes()
    for arguments, code, message in (
        (["-o", str(path), str(tmp_path / "none")], 2, "There is no file or folder"),
        (["-o", str(path), str(tmp_path / "b.py")], 2, "None of the files is UTF-8 text"),
        (["-o", str(path), str(pipe)], 2, "There is no file or folder"),
        (["-o", str(path), str(tmp_path / "empty")], 2, "There is no file in "),
        (["-o", str(path), str(tmp_path), "--glob", "["], 2, "There is no file with a name like ["),
        (
            ["-o", str(path), str(source), "--max-tokens", "1"],
            2,
            "--max-tokens is 1, which leaves no room",
        ),
        (["-o", str(path), str(source), "--max-tokens", "0"], 2, "--max-tokens must be"),
        (["-o", str(source), str(tmp_path)], 2, "a.py exists and is not a corpus; choose"),
        (["-o", str(path), str(source), "-m", "none.gguf"], 2, "none.gguf"),
        (["-o", str(tmp_path / "none" / "c"), str(source)], 1, "cannot be written"),
        (["-o", str(source / "c"), str(source)], 1, "cannot be written"),
        (["-o", str(tmp_path), str(source)], 1, "cannot be written: Is a directory"),
    ):
        assert main(["corpus", "build", *arguments]) == code, arguments
        assert message in capsys.readouterr().err
    assert main(["corpus", "info", str(source)]) == 2
    assert "not a corpus" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert source.read_text().startswith("def f(x):")
    names = sorted(one.name for one in tmp_path.iterdir())
    assert names == ["a.py", "b.py", "empty", "my.corpus"]
    assert main(["corpus", "build", "-o", str(path), str(source)]) == 0  # a corpus is replaced


def test_an_interrupted_build_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No unfinished file stays."""
    source = tmp_path / "a.py"
    source.write_text("x = 1\n" * 100)
    path = tmp_path / "c"
    assert main(["corpus", "build", "-o", str(path), str(source)]) == 0
    before = path.read_bytes()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(corpus, "_fill", stop)
    assert main(["corpus", "build", "-o", str(path), str(source)]) == 130
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2


def test_corpus_ignores_named_pipes_in_folders(tmp_path: Path) -> None:
    """Opening a named pipe would wait for a writer."""
    (tmp_path / "a.py").write_text("x = 1\n")
    os.mkfifo(tmp_path / "pipe.py")
    assert corpus.find_files([tmp_path]) == [tmp_path / "a.py"]


def test_corpus_follows_links_out_of_a_folder_only_if_named(tmp_path: Path) -> None:
    folder, outside = tmp_path / "texts", tmp_path / "secret.txt"
    (folder / "inner").mkdir(parents=True)
    outside.write_text("secret")
    (folder / "a.txt").write_text("a")
    (folder / "inner" / "same.txt").symlink_to(folder / "a.txt")
    (folder / "out.txt").symlink_to(outside)
    (folder / "kernel.txt").symlink_to("/proc/version")
    (folder / "elsewhere").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to(folder)
    for named in (folder, tmp_path / "link"):
        found = corpus.find_files([named])
        assert [os.path.realpath(path) for path in found] == [os.path.realpath(folder / "a.txt")]
    assert folder / "out.txt" in corpus.find_files([folder, folder / "out.txt"])


def test_corpus_skips_endless_files_and_pipes(tmp_path: Path) -> None:
    """A file may be replaced by a pipe or a device before it is read."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.txt").write_text("some words\n" * 20)
    unread = [tmp_path / "pipe", Path("/dev/zero"), Path("/proc/self/maps"), tmp_path]
    built = corpus.build(BUNDLED_MODEL, [*unread, tmp_path / "a.txt"], tmp_path / "c")
    assert built.n_texts == 1
    with pytest.raises(ArgumentError, match="None of the files is UTF-8 text"):
        corpus.build(BUNDLED_MODEL, unread, tmp_path / "d")


def test_corpus_skips_missing_files(tmp_path: Path) -> None:
    kept = tmp_path / "a.py"
    kept.write_text("x = 1\n" * 20)
    built = corpus.build(BUNDLED_MODEL, [tmp_path / "gone.py", kept], tmp_path / "c")
    assert (built.n_texts, built.n_skipped) == (1, 1)


def test_corpus_cuts_long_files_between_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces are tokenized separately, so a word cut in two would get other tokens. Only a line
    longer than a piece is cut."""
    source = tmp_path / "a.py"
    lines = [f"value_{i} = some_function({i})\n" for i in range(50)]
    source.write_text("".join(lines))
    monkeypatch.setattr(corpus, "_PIECE", 100)
    pieces = list(corpus._pieces(source))
    assert len(pieces) > 5
    assert "".join(pieces) == "".join(lines)
    assert all(piece.endswith("\n") for piece in pieces)
