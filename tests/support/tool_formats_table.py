"""Writes docs/reference/tool_formats.md."""

from __future__ import annotations

from chat_templates import SOURCES, opened
from specllama.model.marks import NAME

_HEAD = """\
# What the server reads from chat templates

How a model writes tool calls and reasoning is read from its chat template
([guide](../guides/tools.md)). This table shows the templates that llama.cpp includes. Templates
that use the same format share a row:

- *Call*: the text before a call's arguments. `@` stands for the tool's name.
- *Arguments*: one JSON object; or names and values, each with its own marks.
- *Several*: whether an answer may have several calls.
- *Reasoning*: the marks around it ([words](words.md)).
- *Known from*:
    - *template*: the template writes calls;
    - *model*: the template describes tools, but writes no calls; the model is known;
    - *fallback*: neither. The model is asked to write calls as Hermes does;
    - *a message describes the tools*: the template does not describe them.

| templates | call | arguments | several | reasoning | known from |
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
