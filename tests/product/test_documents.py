"""The examples in the documents run, and what pages for developers name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from folders import ROOT

PYTHON_PAGE = ROOT / "docs/guides/python.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PYTHON_PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("i", range(len(EXAMPLES)))
def test_examples_of_the_python_docs_run(
    i: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(EXAMPLES[i], str(PYTHON_PAGE), "exec"), {})


def test_python_docs_have_examples() -> None:
    assert len(EXAMPLES) > 2


PAGES = ("CONTRIBUTING.md", "docs/internals/architecture.md")
"""Pages for developers: everything that they name exists."""

SOURCES = {
    path: path.read_text()
    for folder in ("csrc", "python", "tests/support")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".h", ".cpp", ".py", ".pyi")
}


def paths_in(page: str) -> set[str]:
    """Return links, paths in backticks, and the paths in the list of folders."""
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)#:]+)", text)
    listed = re.findall(r"^ {4}(?: {2})?([a-z][\w/]*(?:, \w+)*) {2,}\S", text, re.MULTILINE)
    folders = [one for several in listed for one in several.split(", ") if "FOLDER" not in one]
    quoted = re.findall(r"`(\w[\w.*/-]*)`", text)
    endings = (".py", ".h", ".cpp", ".md", ".json")
    return {*links, *folders, *(one for one in quoted if "/" in one or one.endswith(endings))}


@pytest.mark.parametrize("page", PAGES)
def test_paths_named_in_a_page_exist(page: str) -> None:
    found = paths_in(page)
    assert len(found) > 5
    bases = [
        (ROOT / page).parent, ROOT, ROOT / "csrc", ROOT / "csrc/include", ROOT / "python/src",
        ROOT / "csrc/include/specllama", ROOT / "python/specllama", *(ROOT / "tests").glob("*/"),
        *(ROOT / "csrc").glob("*/"),
    ]  # fmt: skip
    assert not [one for one in found if not any([*base.glob(f"{one}*")] for base in bases)]


def test_files_of_this_repository_named_in_any_page_exist() -> None:
    path = r"\b((?:csrc|python|tests|tools|benchmarks|examples)/[\w./-]*\.(?:py|h|cpp|md|json))\b"
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {one for page in pages for one in re.findall(path, page.read_text())}
    assert len(named) > 20
    assert not [one for one in named if not (ROOT / one).exists()]


def test_links_within_the_repository_lead_to_files() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "models/README.md"]
    links = {
        (page, link)
        for page in pages
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
    }
    assert len(links) > 100
    assert not [(page, link) for page, link in links if not (page.parent / link).exists()]


def test_the_site_has_every_page_of_the_documents() -> None:
    listed = set(re.findall(r": (\w[\w/-]*\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    docs = ROOT / "docs"
    assert {str(page.relative_to(docs)) for page in docs.rglob("*.md")} <= listed


def test_contributing_lists_every_folder_of_source() -> None:
    listed = paths_in("CONTRIBUTING.md")
    folders = [f"csrc/{one.name}" for one in (ROOT / "csrc").glob("*/") if one.name != "include"]
    folders += [one.parent.name for one in (ROOT / "python/specllama").glob("*/__init__.py")]
    assert not set(folders) - listed


@pytest.mark.parametrize("page", PAGES)
def test_classes_and_methods_named_in_a_page_exist(page: str) -> None:
    text = re.sub(r"\S+\.(?:py|h|cpp|md|json)\b", "", (ROOT / page).read_text())
    named = re.findall(r"\b([A-Z][a-z]+(?:[A-Z][a-z]*)*)\.(\w+)", text)
    missing = []
    for owner, member in dict.fromkeys(named):
        files = [
            path
            for path, source in SOURCES.items()
            if re.search(rf"(?:class|struct) {owner}\b", source)
        ]
        stems = {path.with_suffix("") for path in files}
        bodies = [source for path, source in SOURCES.items() if path.with_suffix("") in stems]
        if not any(re.search(rf"\b{member}\b", body) for body in bodies):
            missing.append(f"{owner}.{member}")
    assert not missing
