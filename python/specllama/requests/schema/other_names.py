"""Names of properties that a schema does not describe, as a grammar."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from specllama.requests.schema.literal import in_set, literal

_LONGEST = 32
"""Characters by which names are told apart: each takes a group within those before it, and readers
of grammars refuse too many."""

_ESCAPES = {'"': '"', "\\": "\\", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
"""What is written after a backslash for these characters, which a JSON string has only so."""


def other_names(names: Iterable[str], named: Callable[[str, str], str]) -> str:
    """Return GBNF for the JSON strings, quotation marks included, that are none of these names.

    It is a trie of the names that is left at some place. Only what cannot stand for itself is
    escaped, so that no escape spells a name. Control characters without a short escape do not come,
    nor do other names that begin with the first 32 characters of one of these.

    Args:
        names: What the strings may not be.
        named: Makes a rule of a name for it and a piece of GBNF, and returns the rule's name. Rules
            of the same name are the same for all schemas.
    """
    named("name-end", f"({_any_but('')})*")
    # Names that no string spells need no rule.
    spelled = [name for name in names if all(c >= " " or c in _ESCAPES for c in name)]
    return rf'"\"" {_rest(spelled, _LONGEST, named)} "\""'


def _rest(names: Collection[str], depth: int, named: Callable[[str, str], str]) -> str:
    """Return GBNF for what is none of these names, or of their ends."""
    ends: dict[str, list[str]] = {}
    for name in filter(None, names):
        ends.setdefault(name[0], []).append(name[1:])
    leaving = "other" + "".join(f"-{ord(c):x}" for c in ends)
    parts = [named(leaving, f"({_any_but(ends)}) name-end")]
    if depth:
        parts += [f"{_written(c)} {_rest(more, depth - 1, named)}" for c, more in ends.items()]
    text = parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"
    return text if "" in names else f"{text}?"


def _any_but(some: Collection[str]) -> str:
    """Return GBNF for a character in a string that is none of these."""
    plain = "".join(in_set(c) for c in some if c not in _ESCAPES)
    escapes = "".join(in_set(escape) for c, escape in _ESCAPES.items() if c not in some)
    parts = [rf'[^"\\\x00-\x1F{plain}]', *([rf'"\\" [{escapes}]'] if escapes else [])]
    return " | ".join(parts)


def _written(character: str) -> str:
    return literal(f"\\{_ESCAPES[character]}" if character in _ESCAPES else character)
