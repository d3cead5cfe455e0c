"""Texts that record which of their characters came from a message, not from the chat template."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, SupportsIndex

_OURS, _GIVEN = "0", "1"


class TaintedText(str):
    """A str with a mask: "1" for each character that came from a message, "0" for each that the
    template wrote. Its methods return texts with masks, or a plain str if no character came from a
    message.

    Args:
        text: The text.
        mask: Its mask; None: all characters came from a message.
    """

    mask: str

    def __new__(cls, text: str, mask: str | None = None) -> TaintedText:
        made = super().__new__(cls, str.__str__(text))
        made.mask = _GIVEN * len(text) if mask is None else mask
        return made

    def __str__(self) -> str:
        return self

    def __getitem__(self, key: SupportsIndex | slice[Any, Any, Any]) -> str:
        return _masked(super().__getitem__(key), self.mask[key])

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    def __add__(self, other: str) -> str:
        return joined((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> str:
        return joined((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> str:
        return _masked(super().__mul__(times), self.mask * times)

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> str:
        return TaintedText(super().__mod__(values))

    def join(self, texts: Iterable[str]) -> str:
        """See `joined`."""
        return joined(texts, self)

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> str:
        """As `str.replace`."""
        if not old:
            return TaintedText(super().replace(old, new, count))
        parts: list[str] = []
        at, left = 0, int(count)
        while left != 0 and (found := self.find(old, at)) >= 0:
            parts += (self[at:found], new)
            at, left = found + len(old), left - 1
        return joined((*parts, self[at:]))


def _masked(text: str, mask: str) -> str:
    return TaintedText(text, mask) if _GIVEN in mask else str.__str__(text)


def _mask_of(text: str) -> str:
    return text.mask if isinstance(text, TaintedText) else _OURS * len(text)


def _in_place(name: str) -> Callable[..., str]:
    """Return a method that changes characters but not their positions."""

    def method(self: TaintedText) -> str:
        result = getattr(super(TaintedText, self), name)()
        return _masked(result, self.mask) if len(result) == len(self) else TaintedText(result)

    return method


def _stripping(name: str) -> Callable[..., str]:
    """Return a method that removes characters at one end or both."""

    def method(self: TaintedText, *args: Any) -> str:
        result = getattr(super(TaintedText, self), name)(*args)
        begin = len(self) - len(result)
        if name in ("rstrip", "removesuffix"):
            begin = 0
        elif name == "strip":
            begin = len(self) - len(str.lstrip(self, *args))
        return self[begin : begin + len(result)]

    return method


def _splitting(name: str) -> Callable[..., Any]:
    """Return a method that cuts a text into parts. Each part is at its first occurrence after the
    previous part, because the text between two parts contains no part."""

    def method(self: TaintedText, *args: Any, **options: Any) -> Any:
        result = getattr(super(TaintedText, self), name)(*args, **options)
        separator = (args[0] if args else options.get("sep")) if name.endswith("split") else None
        parts, at = [], 0
        for one in result:
            at = self.index(one, at)
            parts.append(self[at : at + len(one)])
            at += len(one) + len(separator or "")
        return type(result)(parts)

    return method


for _name in ("upper", "lower", "casefold", "capitalize", "title", "swapcase"):
    setattr(TaintedText, _name, _in_place(_name))
for _name in ("strip", "lstrip", "rstrip", "removeprefix", "removesuffix"):
    setattr(TaintedText, _name, _stripping(_name))
for _name in ("split", "rsplit", "splitlines", "partition", "rpartition"):
    setattr(TaintedText, _name, _splitting(_name))


def joined(texts: Iterable[str], separator: str = "") -> str:
    """Join texts and their masks."""
    every = list(texts)
    mask = _mask_of(separator).join(map(_mask_of, every))
    return _masked(str.join(separator, every), mask)


def tainted(value: Any) -> Any:
    """Return a JSON value with all its texts tainted, including keys."""
    if isinstance(value, str):
        return value if isinstance(value, TaintedText) else TaintedText(value)
    if isinstance(value, Mapping):
        return {tainted(key): tainted(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [tainted(one) for one in value]
    return value


def is_tainted(*values: Any) -> bool:
    """Whether one of the values is a tainted text, or contains one."""
    waiting = list(values)
    while waiting:
        one = waiting.pop()
        if isinstance(one, TaintedText):
            return True
        if isinstance(one, Mapping):
            waiting.extend(one)
            waiting.extend(one.values())
        elif isinstance(one, (list, tuple)):
            waiting.extend(one)
    return False


def unlike(text: str, *others: Any) -> str:
    """Return a text of the template as a tainted text if one of the others has a mask."""
    return TaintedText(text, _mask_of(text)) if is_tainted(*others) else text


def written(value: Any) -> str:
    """Return `str(value)`. If a value that is not a text contains a tainted one, the whole result
    is tainted."""
    text = str(value)
    return TaintedText(text) if not isinstance(value, str) and is_tainted(value) else text


def plain_ranges(text: str) -> list[tuple[int, int]]:
    """Return the parts of a text that came from messages, as pairs of begin and end in bytes of
    UTF-8."""
    ranges = []
    at = begin = 0
    for mark, run in groupby(_mask_of(text)):
        end = begin + sum(1 for _ in run)
        n_bytes = len(str.__getitem__(text, slice(begin, end)).encode())
        if mark == _GIVEN:
            ranges.append((at, at + n_bytes))
        begin, at = end, at + n_bytes
    return ranges
