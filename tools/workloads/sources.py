"""What the workloads are made from: functions and texts of the running Python."""

from __future__ import annotations

import ast
import importlib
import re
import sysconfig
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

STDLIB = Path(sysconfig.get_paths()["stdlib"])

# A line that must stay a line: code, a list item, a footnote, or what underlines a heading.
_NOT_PROSE = re.compile(r" |\* |\[\d|\d+\. |-\[|[*=-]{4,}")


class Function(NamedTuple):
    """A function or method of the standard library."""

    tree: ast.Module
    """The module that it is in."""
    node: ast.FunctionDef
    module: str
    """The whole text of that module."""
    text: str
    """Its own text, from `def` to the end of its last line, not indented."""


def read_function(module: str, name: str) -> Function:
    """Read a function, `name` as in `shutil.move` or `csv.Sniffer.sniff` without the module, which
    is a path below the library, without `.py`."""
    text = (STDLIB / f"{module}.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    node: ast.AST = tree
    for part in name.split("."):
        assert isinstance(node, (ast.Module, ast.ClassDef))
        node = next(child for child in node.body if getattr(child, "name", None) == part)
    assert isinstance(node, ast.FunctionDef)
    lines = text.splitlines(keepends=True)[node.lineno - 1 : node.end_lineno]
    return Function(tree, node, text, dedent("".join(lines)))


def read_topic(name: str) -> list[str]:
    """Return the paragraphs of a chapter of the language reference, as `help()` shows it.

    The heading comes first, without its underline. Paragraphs of prose become one line each, as
    text is written today; others keep their lines.
    """
    # Its type stubs, where there are any, know nothing of the contents.
    text = importlib.import_module("pydoc_data.topics").topics[name].strip()
    heading, *paragraphs = re.split(r"\n{2,}", text)
    return [heading.split("\n")[0], *map(unwrap, paragraphs)]


def unwrap(paragraph: str) -> str:
    """Join the lines of a paragraph, if it is prose."""
    lines = paragraph.split("\n")
    if any(_NOT_PROSE.match(line) for line in lines):
        return paragraph
    joined = re.sub(r"(?<=\w)-\n", "-", paragraph)  # a compound word broken at its hyphen
    return re.sub(r"\s+", " ", joined)
