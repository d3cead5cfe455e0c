"""Which folders of C++ may include which; all dependencies point one way.

cli, python -> session -> engine -> {draft, plan, sample, runtime}
runtime -> device -> gguf -> llama
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from folders import ROOT

CSRC = ROOT / "csrc"
PURE = {"draft", "plan", "sample"}
SHARED = {"clones.h", "fnv.h"}
SEES_LLAMA_CPP = {
    "csrc/llama",
    "csrc/gguf",
    "csrc/device",
    "csrc/runtime",
    "csrc/runtime/drafting",
    "csrc/vision",
}
LLAMA_CPP = re.compile(r"(llama|llama-cpp|ggml[-a-z]*|gguf|mtmd|mtmd-helper)\.h")

# Every file may also include the public headers, SHARED, and headers named without a folder, which
# are in its own folder.
MAY_INCLUDE = {
    "csrc": set[str](),
    "csrc/include/specllama": set[str](),
    "csrc/files": {"files"},
    "csrc/system": {"system"},
    "csrc/text": {"text"},
    "csrc/sample": {"sample"},
    "csrc/plan": {"plan"},
    "csrc/draft": {"draft", "sample"},
    "csrc/draft/ngram": {"draft", "sample"},
    "csrc/draft/corpus": {"draft", "files/regular_file.h", "sample"},
    "csrc/draft/history": {"draft", "sample"},
    "csrc/draft/history/history_file": {"draft", "files"},
    "csrc/draft/constraint": {"draft", "sample"},
    "csrc/draft/constraint/grammar_drafter": {"draft", "sample", "text/vocabulary.h"},
    "csrc/draft/model": {
        "device/context_plan.h",
        "draft",
        "gguf/head_file.h",
        "runtime",
        "sample",
    },
    "csrc/draft/model/draft_sampler": {"draft", "sample"},
    "csrc/draft/head": {
        "device/context_plan.h",
        "draft",
        "gguf/head_file.h",
        "runtime",
        "sample",
    },
    "csrc/draft/block": {
        "device/context_plan.h",
        "draft",
        "gguf/block_file.h",
        "runtime",
        "sample",
    },
    "csrc/constraint": {
        "constraint",
        "runtime",
        "sample/mask.h",
        "system/big_stack.h",
        "text/utf8.h",
    },
    "csrc/llama": {"llama"},
    "csrc/gguf": {"gguf", "llama"},
    "csrc/gguf/architecture": {"gguf", "system/layer_split.h"},
    "csrc/device": {"device", "files", "gguf", "llama", "system"},
    "csrc/runtime": {
        "device",
        "gguf",
        "llama",
        "runtime",
        "sample/mask.h",
        "system",
        "text/special_texts.h",
        "text/utf8.h",
        "text/vocabulary.h",
    },
    "csrc/vision": {"device", "files", "llama", "runtime", "vision"},
    "csrc/api": {"files/sha256.h", "runtime", "session"},
    "csrc/runtime/drafting": {
        "device",
        "files",
        "gguf",
        "llama",
        "runtime",
        "system",
    },
    "csrc/engine": {"engine", "runtime", "system/clock.h", "text", "vision", *PURE},
    "csrc/engine/speculator": {"engine", "system/clock.h", "text", *PURE},
    "csrc/engine/target": {"draft", "engine", "runtime", "system/clock.h", "text", "vision"},
    "csrc/beam": {"beam", "device", "engine", "runtime", "system", "text", *PURE},
    "csrc/session": {
        "beam",
        "constraint",
        "device",
        "engine",
        "files",
        "gguf",
        "llama",
        "runtime",
        "session",
        "system",
        "text",
        "vision",
        *PURE,
    },
    # The command line uses public headers.
    "csrc/cli": {"cli", "text/utf8.h"},
    # Python also uses the pure rooms and spec-cli, and settings of the process: whether AMX works,
    # where llguidance is, and the cache folder.
    "python/src": {
        "cli/chat.h",
        "cli/flags.h",
        "cli/options.h",
        "cli/spec_cli.h",
        "constraint/llguidance.h",
        "device/amx.h",
        "files/cache_folder.h",
        *PURE,
    },
    "tests/cpp": set[str](),
    "tests/cpp/draft": {"check.h", "draft", "sample"},
    "tests/cpp/files": {"check.h", "files"},
    "tests/cpp/plan": {"check.h", "plan"},
    "tests/cpp/sample": {"check.h", "sample"},
    "tests/cpp/session": {"check.h", "session"},
    "tests/cpp/system": {"check.h", "system"},
    "tests/cpp/text": {"check.h", "text"},
    "tests/cpp/vision": {"check.h", "vision"},
    "tests/cpp/public": {"check.h"},
    "examples/drafter": set[str](),
}


def room_of(path: Path) -> str:
    """Return the innermost room of the table that contains a file."""
    place = path.relative_to(ROOT)
    stem = place.with_suffix("").as_posix()
    return stem if stem in MAY_INCLUDE else place.parent.as_posix()


def sources() -> Iterator[Path]:
    for folder in ("csrc", "python/src", "tests/cpp", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".h", ".cpp"}:
                yield path


def includes(path: Path) -> Iterator[str]:
    for line in path.read_text().splitlines():
        if found := re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line):
            yield found[1]


def is_ours(header: str) -> bool:
    return any(
        (folder / header).is_file() for folder in (CSRC, ROOT / "python/src", ROOT / "tests/cpp")
    )


@pytest.mark.parametrize("room", MAY_INCLUDE)
def test_rooms_include_only_allowed_headers(room: str) -> None:
    n_seen = 0
    for path in sources():
        if room_of(path) != room:
            continue
        for header in includes(path):
            n_seen += 1
            if LLAMA_CPP.fullmatch(header):
                assert room in SEES_LLAMA_CPP, f"{path}: {header}"
            elif is_ours(header) and header not in SHARED and not (path.parent / header).is_file():
                top = header.split("/")[0]
                assert {top, header} & MAY_INCLUDE[room], f"{path}: {header}"
    assert n_seen > 0


def test_every_cpp_file_is_in_a_room() -> None:
    assert {room_of(path) for path in sources()} == set(MAY_INCLUDE)


def test_headers_are_included_by_their_path() -> None:
    """Paths have no "../", and our headers are in quotes; the rules above rely on both."""
    for path in sources():
        for line in path.read_text().splitlines():
            if line.startswith("#include"):
                assert "../" not in line, f"{path}: {line}"
                header = re.split(r'[<">]', line)[1]
                assert not (is_ours(header) and "<" in line), f"{path}: {line}"


def test_pure_rooms_are_built_without_llama_cpp() -> None:
    """Then the compiler enforces it."""
    listed = (CSRC / "CMakeLists.txt").read_text()
    pure = listed[listed.index("specllama_pure OBJECT") :].split(")")[0].split()[2:]
    on_disk = {
        path.relative_to(CSRC).as_posix()
        for room in PURE - {"draft"}
        for path in (CSRC / room).rglob("*.cpp")
    }
    assert on_disk <= set(pure)
    # All drafters except those that a pattern excludes.
    assert "${pure_drafters}" in pure
    assert set(re.findall(r'set\(on_runtime "(.*)"\)', listed)) == {
        "draft/(block/|head/|model/(assistant|model)_drafter)"
    }
