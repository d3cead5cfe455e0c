"""Writes docs/reference/tool_formats.md."""

from __future__ import annotations

from chat_templates import SOURCES, opened
from specllama.model.marks import NAME

_HEAD = """\
# What the server reads from chat templates

The server reads from a model's chat template how the model writes tool calls and thoughts. This
table shows the result for llama.cpp's templates; templates with the same marks share a line:

- *Call*: the text before a call's arguments, with `@` for the tool's name.
- *Arguments*: one JSON object, or names and values with their own marks.
- *Several*: whether an answer can have several calls.
- *Thoughts*: the marks around thoughts.
- *Known from*: the template, or the model, if its template describes tools but writes no calls.

| templates | call | arguments | several | thoughts | known from |
|---|---|---|---|---|---|
"""


def document() -> str:
    """Return the whole page."""
    lines: dict[str, list[str]] = {}
    for name in SOURCES:
        lines.setdefault(_line(name), []).append(name)
    return _HEAD + "".join(f"| {', '.join(names)} {line}\n" for line, names in lines.items())


def _line(name: str) -> str:
    template, form = opened(name)
    shape, thinking = form.shapes[0], template.thinking
    arguments = "JSON"
    if (one := shape.parameters) is not None:
        arguments = _code(f"{one.begin}name{one.openings['string']}value")
    marks = "" if thinking is None else f"{_code(thinking.opening)} {_code(thinking.closing)}"
    known = form.source if form.describes else f"{form.source}; a message describes the tools"
    call = _code((shape.opening + shape.head).replace(NAME, "@"))
    several = "yes" if form.parallel else "no"
    return f"| {call} | {arguments} | {several} | {marks} | {known} |"


def _code(text: str) -> str:
    shown = text.replace("\n", "⏎").replace("\ufdd1", "0").replace("\ufdd2", "id")
    return f"`` {shown} ``".replace("|", "\\|")


if __name__ == "__main__":
    print(document(), end="")
