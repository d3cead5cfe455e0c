"""edit: a function is repeated with one change."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sources import read_function
from specllama.workloads import Replay


class Edit(NamedTuple):
    kind: str
    module: str
    function: str
    instruction: str
    changes: tuple[tuple[str, str], ...]
    """(old, new): for the kind `rename` a variable's names, otherwise pieces of text. Each of these
    `old` pieces occurs exactly once."""


EDITS = [
    Edit(
        "rename",
        "shutil",
        "chown",
        "Rename the variable `_user` to `uid`.",
        (("_user", "uid"),),
    ),
    Edit(
        "rename",
        "copyreg",
        "_slotnames",
        "Rename the variable `names` to `slot_names`.",
        (("names", "slot_names"),),
    ),
    Edit(
        "rename",
        "email/_policybase",
        "_PolicyBase.clone",
        "Rename the variable `newpolicy` to `policy`.",
        (("newpolicy", "policy"),),
    ),
    Edit(
        "rename",
        "shutil",
        "_unpack_zipfile",
        "Rename the variable `targetpath` to `destination`.",
        (("targetpath", "destination"),),
    ),
    Edit(
        "rename",
        "tracemalloc",
        "_compare_grouped_stats",
        "Rename the variable `statistics` to `differences`.",
        (("statistics", "differences"),),
    ),
    Edit(
        "rename",
        "shutil",
        "_rmtree_unsafe",
        "Rename the variable `fullname` to `entry_path`.",
        (("fullname", "entry_path"),),
    ),
    Edit(
        "argument",
        "lzma",
        "decompress",
        "Add an argument `max_streams` that limits how many streams are decompressed.",
        (
            ("memlimit=None, filters=None):", "memlimit=None, filters=None,\n"
             "               max_streams=None):"),
            (" use an LZMADecompressor instead.\n", " use an LZMADecompressor instead.\n\n"
             "    At most *max_streams* streams are decompressed, if it is given.\n"),
            ("if not data:", "if not data or len(results) == max_streams:"),
        ),
    ),
    Edit(
        "argument",
        "tracemalloc",
        "Traceback.format",
        "Add an argument `indent` for what stands before every line.",
        (
            ("most_recent_first=False):", "most_recent_first=False, indent='  '):"),
            ("'  File \"%s\", line %s'", "'%sFile \"%s\", line %s'"),
            ("% (frame.filename, frame.lineno))", "% (indent, frame.filename, frame.lineno))"),
            ("'    %s' % line", "'%s  %s' % (indent, line)"),
        ),
    ),
    Edit(
        "argument",
        "getpass",
        "win_getpass",
        "Add an argument `echo_char`: what is shown for every character typed, nothing by default.",
        (
            ("stream=None):", "stream=None, echo_char=''):"),
            ("            pw = pw[:-1]\n", "            pw = pw[:-1]\n"
             "            if echo_char:\n"
             "                msvcrt.putwch('\\b')\n"),
            ("            pw = pw + c\n", "            pw = pw + c\n"
             "            if echo_char:\n"
             "                msvcrt.putwch(echo_char)\n"),
        ),
    ),
    Edit(
        "argument",
        "distutils/spawn",
        "find_executable",
        "Add an argument `suffix` for the extension of executables on Windows.",
        (
            ("path=None):", "path=None, suffix='.exe'):"),
            ("(ext != '.exe')", "(ext != suffix)"),
            ("executable + '.exe'", "executable + suffix"),
        ),
    ),
    Edit(
        "argument",
        "poplib",
        "POP3._getline",
        "Add an argument `max_line` for the longest line accepted, `_MAXLINE` by default.",
        (
            ("(self):", "(self, max_line=_MAXLINE):"),
            ("readline(_MAXLINE + 1)", "readline(max_line + 1)"),
            ("len(line) > _MAXLINE", "len(line) > max_line"),
        ),
    ),
    Edit(
        "argument",
        "shutil",
        "get_terminal_size",
        "Add an argument `environ`, the mapping in which COLUMNS and LINES are looked up.",
        (
            ("fallback=(80, 24)):", "fallback=(80, 24), environ=os.environ):"),
            ("os.environ['COLUMNS']", "environ['COLUMNS']"),
            ("os.environ['LINES']", "environ['LINES']"),
        ),
    ),
    Edit(
        "constant",
        "crypt",
        "mksalt",
        "Raise the smallest number of SHA-2 rounds from 1000 to 5000.",
        (
            ("not 1000 <= rounds", "not 5000 <= rounds"),
            ("range 1000 to", "range 5000 to"),
        ),
    ),
    Edit(
        "constant",
        "shutil",
        "_fastcopy_sendfile",
        "Make the smallest block 32 MiB instead of 8 MiB.",
        (("2 ** 23)  # min 8MiB", "2 ** 25)  # min 32MiB"),),
    ),
    Edit(
        "constant",
        "multiprocessing/synchronize",
        "SemLock.__init__",
        "Try 1000 names for the semaphore instead of 100.",
        (("range(100)", "range(1000)"),),
    ),
    Edit(
        "constant",
        "tracemalloc",
        "_format_size",
        "Change to the next unit at 8 * 1024, no longer at 10 * 1024.",
        (("10 * 1024", "8 * 1024"),),
    ),
    Edit(
        "constant",
        "copyreg",
        "add_extension",
        "Allow codes up to 0x7fff only.",
        (("0x7fffffff", "0x7fff"),),
    ),
    Edit(
        "constant",
        "csv",
        "Sniffer.sniff",
        "End lines with a line feed alone.",
        (("'\\r\\n'", "'\\n'"),),
    ),
    Edit(
        "hints",
        "poplib",
        "POP3.stls",
        "Add type hints.",
        (("(self, context=None):", "(self, context: ssl.SSLContext | None = None) -> bytes:"),),
    ),
    Edit(
        "hints",
        "xml/dom/domreg",
        "_parse_feature_string",
        "Add type hints.",
        (
            ("(s):", "(s: str) -> tuple[tuple[str, str | None], ...]:"),
            ("features = []", "features: list[tuple[str, str | None]] = []"),
        ),
    ),
    Edit(
        "hints",
        "shutil",
        "register_archive_format",
        "Add type hints.",
        (
            ("(name, function, extra_args=None, description=''):",
             "(name: str, function: Callable[..., object],\n"
             "                            extra_args: Sequence[tuple[str, Any]] | None = None,\n"
             "                            description: str = '') -> None:"),
        ),
    ),
    Edit(
        "hints",
        "shutil",
        "unpack_archive",
        "Add type hints.",
        (
            ("(filename, extract_dir=None, format=None, *, filter=None):",
             "(filename: str | os.PathLike[str],\n"
             "                   extract_dir: str | os.PathLike[str] | None = None,\n"
             "                   format: str | None = None, *,\n"
             "                   filter: str | None = None) -> None:"),
        ),
    ),
    Edit(
        "hints",
        "tracemalloc",
        "Snapshot._group_by",
        "Add type hints.",
        (
            ("(self, key_type, cumulative):",
             "(self, key_type: str, cumulative: bool) -> dict[Traceback, Statistic]:"),
            ("stats = {}", "stats: dict[Traceback, Statistic] = {}"),
            ("tracebacks = {}", "tracebacks: dict[Any, Traceback] = {}"),
        ),
    ),
    Edit(
        "hints",
        "multiprocessing/synchronize",
        "Condition.wait_for",
        "Add type hints.",
        (
            ("(self, predicate, timeout=None):",
             "(self, predicate: Callable[[], bool],\n"
             "             timeout: float | None = None) -> bool:"),
        ),
    ),
]  # fmt: skip


def make() -> Iterator[Replay]:
    for edit in in_turn(EDITS):
        original = read_function(edit.module, edit.function).text
        edited = original
        for old, new in edit.changes:
            if edit.kind == "rename":
                edited = rename(edited, old, new)
            else:
                assert edited.count(old) == 1, (edit.function, old)
                edited = edited.replace(old, new)
        yield Replay(
            prompt=f"{edit.instruction}\n\n```python\n{original}```\n\n"
            "The edited function:\n\n```python\n",
            reference=edited,
            name=f"{edit.kind} {edit.module}.{edit.function}",
            workload="edit",
        )


def in_turn(edits: Sequence[Edit]) -> Iterator[Edit]:
    """Yield one of each kind, then the next of each, so that the first few represent all kinds."""
    kinds: dict[str, list[Edit]] = {}
    for edit in edits:
        kinds.setdefault(edit.kind, []).append(edit)
    for turn in zip(*kinds.values(), strict=True):
        yield from turn


def rename(source: str, old: str, new: str) -> str:
    """Rename a variable in the code, but not in strings and comments."""
    lines = source.splitlines(keepends=True)
    found = [
        token.start
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.NAME and token.string == old
    ]
    assert found, old
    for row, column in reversed(found):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines)
