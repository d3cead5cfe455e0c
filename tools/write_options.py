"""Writes docs/reference/options.md from the tables of options: run it after a change of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from specllama._field import Field
from specllama.model.session_options import FIELDS as SESSION
from specllama.requests.options import FIELDS

PAGE = Path(__file__).parents[1] / "docs/reference/options.md"
BEGIN, END = "<!-- {} -->\n", "<!-- end -->\n"


def table(fields: Mapping[str, Field]) -> str:
    """Return a table of options in Markdown."""
    rows = [
        f"| `{name}` | {_code(field.flags)} | {_code([field.field] if field.field else ())} | "
        f"{field.by_default} | {field.range or _code(field.choices)} | {field.brief} |\n"
        for name, field in fields.items()
    ]
    head = "| Python | flags | field of requests | default | values | what |\n"
    return head + "|---|---|---|---|---|---|\n" + "".join(rows)


def _code(words: Iterable[str]) -> str:
    return " ".join(f"`{word}`" for word in words)


def page(text: str) -> str:
    """Return the page with its tables as they are now."""
    for name, fields in (("generation", FIELDS), ("session", SESSION)):
        begin = BEGIN.format(name)
        head, _, rest = text.partition(begin)
        text = head + begin + table(fields) + END + rest.partition(END)[2]
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
