"""code: a function is written from its signature and docstring, without text to copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sources import Function, read_function
from specllama.workloads import Replay

FUNCTIONS = [
    ("shutil", "make_archive"),
    ("shutil", "copystat"),
    ("shutil", "which"),
    ("xml/dom/domreg", "getDOMImplementation"),
    ("tracemalloc", "Snapshot.filter_traces"),
    ("getpass", "unix_getpass"),
    ("distutils/spawn", "spawn"),
    ("lzma", "LZMAFile.close"),
    ("poplib", "POP3.close"),
]


def make() -> Iterator[Replay]:
    for module, name in FUNCTIONS:
        function = read_function(module, name)
        lines = function.module.splitlines(keepends=True)
        docstring, *rest = function.node.body
        assert isinstance(docstring, ast.Expr)
        assert rest
        start, end = function.node.lineno - 1, docstring.end_lineno
        assert end is not None
        prompt = head(function, name) + "".join(lines[start:end])
        reference = "".join(lines[end : function.node.end_lineno])
        yield Replay(prompt, reference, f"{module}.{name}", "code")


def head(function: Function, name: str) -> str:
    """Return the beginning of a file with only this function, including the class of a method."""
    parts = []
    documentation = ast.get_docstring(function.tree)
    if documentation:
        parts.append(f'"""{documentation.splitlines()[0]}"""\n\n')
    imports = [
        ast.unparse(node)
        for node in function.tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    parts.append("\n".join(imports) + "\n\n\n")
    if "." in name:
        parts.append(f"class {name.split('.')[0]}:\n")
    return "".join(parts)
