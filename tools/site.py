"""A hook of MkDocs that adds pages for the documents outside docs/ and for the C++ headers."""

from __future__ import annotations

import re
from os.path import relpath
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
HEADERS = ROOT / "csrc/include/specllama"
CPP_PAGE = "reference/cpp.md"

OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "models/README.md": "models.md",
    "python/specllama/workloads/README.md": "workloads.md",
}
"""Paths in the repository and in the site of files that become pages."""

_IN_REPOSITORY = {page: path for path, page in OUTSIDE.items()}
_LINK = re.compile(r"(?P<before>\]\(|(?:src|srcset)=\")(?P<path>[^)#\s\":]+)(?P<after>[)#\"])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/."""
    for path, page in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    text = files.get_file_from_path(CPP_PAGE)
    assert text is not None
    files.remove(text)
    files.append(File.generated(config, CPP_PAGE, content=text.content_string + headers()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links within the repository into links within the site."""
    here = page.file.src_uri
    source = Path(_IN_REPOSITORY.get(here, f"docs/{here}"))

    def link(match: re.Match[str]) -> str:
        path = relpath(source.parent / match["path"], ".")
        target = OUTSIDE.get(path, path.removeprefix("docs/"))
        return match["before"] + relpath(target, Path(here).parent) + match["after"]

    return _LINK.sub(link, markdown)


def headers() -> str:
    """Return the public headers as Markdown."""
    return "".join(
        f"\n## {header.name}\n\n```cpp\n{header.read_text().strip()}\n```\n"
        for header in sorted(HEADERS.glob("*.h"))
    )
