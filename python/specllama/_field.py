"""One option, as Python callers, command lines, the server and the documents use it: a line of the
core's table, or an option that only Python has."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from specllama import _check, _core
from specllama.errors import ArgumentError

INT32 = 2**31 - 1

Check = Callable[[str, Any], Any]


@dataclass(frozen=True)
class Field:
    """An option.

    Attributes:
        name: Its name in Python.
        check: Called with the name (for error messages) and a given value; returns the value in the
            form the core takes. Raises ArgumentError. The core checks ranges.
        help: A description. Tables and command lines show only its first sentence.
        kind: "flag", "integer", "number", "text", "texts", "numbers", "choice", "switch", or "" for
            other types.
        default: The value if the option is not given, in the form the core takes.
        by_default: The default in words, with the meaning of special values.
        range: The numbers allowed, in words; "": any number, or the option is not a number.
        low, high: The same as numbers.
        choices: The texts allowed; (): any text, or the option is not a text.
        words: Words that may be given for some numbers.
        flags: Its flags on command lines; (): commands share no flag for it.
        value: The placeholder of its value in their help.
        field: Its name in requests to the server; "": requests cannot give the value as it is.
        aliases: Its names in other programs.
    """

    name: str
    check: Check
    help: str
    kind: str = ""
    default: Any = None
    by_default: str = "none"
    range: str = ""
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    words: Mapping[str, int | None] | None = None
    flags: tuple[str, ...] = ()
    value: str = ""
    field: str = ""
    aliases: tuple[str, ...] = ()

    @classmethod
    def of(cls, option: _core.Option, check: Check | None = None) -> Field:
        """Return the option of a line of the core's table. `check` is needed if the type alone does
        not decide how Python values are read."""
        words: dict[str, int | None] = {
            word: int(number) for word, _, number in (one.partition("=") for one in option.words)
        }
        if option.by_default.startswith("auto"):
            words = {"auto": None, **words}
        known: dict[str, Any] = {"check": check or _checker(option, words), "words": words}
        for one in fields(cls):
            known.setdefault(one.name, getattr(option, one.name, None))
        return cls(**known)

    @property
    def brief(self) -> str:
        """The first sentence, without its full stop."""
        return self.help.split(". ")[0].rstrip(".")


def described(fields: Mapping[str, Field], groups: Mapping[str, str]) -> str:
    """Return the options as a docstring lists them.

    Args:
        fields: The options by their names.
        groups: Headings, each by the name of the first option below it.
    """
    lines = []
    for name, field in fields.items():
        if name in groups:
            lines += ["", f"    {groups[name]}:"]
        values = f"; {field.range}" if field.range else ""
        text = f"{name}: {field.help} (Default: {field.by_default}{values}.)"
        lines.append(
            textwrap.fill(
                text, 96, initial_indent=" " * 8, subsequent_indent=" " * 12, break_on_hyphens=False
            )
        )
    return "\n".join(lines)


def _checker(option: _core.Option, words: Mapping[str, int | None]) -> Check:
    """Return what checks the type of an option's values."""
    check: Check
    if option.kind == "integer":
        high = 2**62 if option.name == "ngram_max_bytes" else INT32

        def check(name: str, value: Any) -> Any:
            low = 0 if high > INT32 else -INT32 - 1
            if words:
                return _check.integer_or(name, value, words, low=low, high=high)
            return _check.integer(name, value, low=low, high=high)

    elif option.kind == "choice":

        def check(name: str, value: Any) -> Any:
            if not isinstance(value, str) or value not in option.choices:
                allowed = " or ".join(f'"{one}"' for one in option.choices)
                raise ArgumentError(f"{name} must be {allowed}, not {_check.quoted(value)}.")
            return type(option.default)[value]

    else:
        check = _CHECKS[option.kind]
    if not option.optional:
        return check
    return lambda name, value: option.default if value is None else check(name, value)


def _numbers(name: str, value: Any) -> list[float]:
    if isinstance(value, (str, bytes)) or not _check.has_several(value):
        raise ArgumentError(f"{name} must be a list of numbers, not {_check.quoted(value)}.")
    return [_check.number(name, one) for one in value]


_CHECKS: dict[str, Check] = {
    "flag": _check.flag,
    "number": _check.number,
    "text": _check.named,
    "texts": _check.texts,
    "numbers": _numbers,
    "switch": _check.switch,
    "": lambda name, value: value,  # checked where it is converted
}


def completed(table: Any) -> Any:
    """Return a TypedDict of options unchanged, so that jedi can complete its keys.

    Pyright and others complete a method's options from `**options: Unpack[Table]`. jedi, which
    completes in IPython and Jupyter, does not read that. But it follows `**options` to the call
    `Table(**options)` in the method, and it completes the fields of a class whose decorator may
    return a dataclass. (An annotated return type would take precedence, so it is Any.)
    """
    return dataclass(table) if table is None else table
