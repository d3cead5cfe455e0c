"""Sources of the workloads: functions and texts of the running Python."""

from __future__ import annotations

import ast
import importlib
import re
import sysconfig
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

STDLIB = Path(sysconfig.get_paths()["stdlib"])

# A line that must not be joined: code, a list item, a footnote, or the underline of a heading.
_NOT_PROSE = re.compile(r" |\* |\[\d|\d+\. |-\[|[*=-]{4,}")


class Function(NamedTuple):
    """A function or method of the standard library."""

    tree: ast.Module
    """Its module."""
    node: ast.FunctionDef
    module: str
    """The text of the module."""
    text: str
    """The text of the function, from `def` to its last line, not indented."""


def read_function(module: str, name: str) -> Function:
    """Read a function. module: path in the standard library, without `.py`. name: name in the
    module, such as `move` or `Sniffer.sniff`."""
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
    """Return the paragraphs of a chapter of the language reference, as shown by `help()`.

    The heading comes first, without its underline. Each paragraph of prose becomes one line;
    others keep their lines.
    """
    # Its type stubs, if installed, do not declare the contents.
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
