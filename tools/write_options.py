"""Write the tables of docs/reference/options.md and docs/start/coming-from.md from the tables that
the commands use. Run this after changing one of those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from specllama._field import Field
from specllama.commands.foreign_options import (
    IGNORED_SWITCHES,
    IGNORED_VALUES,
    REFUSED,
    RENAMED,
)
from specllama.model.session_options import FIELDS as SESSION
from specllama.requests.options import FIELDS
from specllama.server.ollama.fields import HONOURED

DOCS = Path(__file__).parents[1] / "docs"
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


def grouped(meanings: Mapping[str, str], head: str) -> str:
    """Return a table of flags in Markdown, with one row for each meaning."""
    flags: dict[str, list[str]] = {}
    for flag, meaning in meanings.items():
        flags.setdefault(meaning, []).append(flag)
    rows = (f"| {_code(names)} | {meaning} |\n" for meaning, names in flags.items())
    return f"| there | {head} |\n|---|---|\n" + "".join(rows)


TABLES = {
    "reference/options.md": {"generation": table(FIELDS), "session": table(SESSION)},
    "start/coming-from.md": {
        "renamed": grouped({flag: f"`{name}`" for flag, name in RENAMED.items()}, "here"),
        "ignored": _code(sorted(IGNORED_SWITCHES | IGNORED_VALUES)) + "\n",
        "refused": grouped({flag: advice for flag, (_, advice) in REFUSED.items()}, "what to do"),
        "ollama": _code(sorted(HONOURED)) + "\n",
    },
}
"""The tables of each page, by the comments before them."""


def written(text: str, tables: Mapping[str, str]) -> str:
    """Return a page with its tables updated."""
    for name, rows in tables.items():
        begin = BEGIN.format(name)
        head, _, rest = text.partition(begin)
        text = head + begin + rows + END + rest.partition(END)[2]
    return text


if __name__ == "__main__":
    for page, tables in TABLES.items():
        path = DOCS / page
        path.write_text(written(path.read_text(), tables))
