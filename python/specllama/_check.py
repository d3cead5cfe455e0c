"""Checks of argument types. The core, which spec-cli shares, checks ranges."""

from __future__ import annotations

import operator
import os
import reprlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from specllama import _core
from specllama._arrays import is_array, is_bool
from specllama.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Tokens: TypeAlias = "list[int] | NDArray[np.int32]"
T = TypeVar("T")

_INT32 = 2**31
_LONGEST_PATH = 4096
"""In characters. Linux allows this many bytes."""

_MOST_QUOTED = 80
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def quoted(value: Any) -> str:
    """Return a value for a message: as in code, shortened if it is long."""
    try:
        text = _SHORT.repr(value)
    except Exception:  # an int with too many digits, or an error in the value's repr
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _MOST_QUOTED else f"{text[: _MOST_QUOTED - 3]}..."


def differ(value: Any, other: Any) -> bool:
    """Return whether two values differ. Arrays, which compare by element, always do."""
    try:
        return bool(value != other)
    except ValueError:
        return True


def first(*values: Any) -> Any:
    """Return the first value that is not None; None if there is none."""
    return next((value for value in values if value is not None), None)


def optional(check: Callable[[str, Any], T], name: str, value: Any) -> T | None:
    """Return None for None; for other values return the result of `check`, or raise its error."""
    return None if value is None else check(name, value)


def integer(name: str, value: Any, *, low: int = -_INT32, high: int = _INT32 - 1) -> int:
    """Return `value` as an int from `low` to `high`. Raises ArgumentError."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be a whole number, not {quoted(value)}.") from None
    if not low <= number <= high:
        is_open = high == _INT32 - 1 and low > -_INT32
        bounds = f"from {low} on" if is_open and number < low else f"from {low} to {high}"
        raise ArgumentError(f"{name} must be {bounds}, not {quoted(number)}.")
    return number


def integer_or(
    name: str,
    value: Any,
    words: Mapping[str, int | None],
    *,
    low: int = -_INT32,
    high: int = _INT32 - 1,
) -> int | None:
    """Return `value` as `integer` does; or, if it is one of the words, the word's number. Raises
    ArgumentError."""
    if not isinstance(value, str):
        return integer(name, value, low=low, high=high)
    if value not in words:
        known = " or ".join(f'"{word}"' for word in words)
        raise ArgumentError(f"{name} must be a whole number or {known}, not {quoted(value)}.")
    return words[value]


def number(name: str, value: Any) -> float:
    """Return `value` as a float. Raises ArgumentError."""
    try:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name} must be a number, not {quoted(value)}.") from None


def text(name: str, value: Any) -> str:
    """Return `value` if it is a str that can be encoded as UTF-8. Raises ArgumentError."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a str, not {type(value).__name__}.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"{name} has a lone surrogate at index {error.start}, which is not a character."
        ) from None
    return value


def named(name: str, value: Any) -> str:
    """Return `value` if it is a `text` without a NUL. (A message that quotes a NUL would end
    there.) Raises ArgumentError."""
    checked = text(name, value)
    if "\0" in checked:
        raise ArgumentError(f"{name} has a NUL character; leave it out.")
    return checked


def flag(name: str, value: Any) -> bool:
    """Return `value`, True or False, as a bool. Raises ArgumentError."""
    if not is_bool(value):
        raise ArgumentError(f"{name} must be True or False, not {quoted(value)}.")
    return bool(value)


def switch(name: str, value: Any) -> _core.Switch:
    """Return the switch for True, False or "auto". Raises ArgumentError."""
    if isinstance(value, bool):
        return _core.Switch.on if value else _core.Switch.off
    if not isinstance(value, str) or value != "auto":
        raise ArgumentError(f'{name} must be True, False or "auto", not {quoted(value)}.')
    return _core.Switch.automatic


def path(name: str, value: Any) -> str:
    """Return a path as a str, "~" expanded. Raises ArgumentError."""
    try:
        path = text(name, os.fspath(value))
    except TypeError:
        raise ArgumentError(f"{name} must be a path, not {type(value).__name__}.") from None
    if not path:
        raise ArgumentError(f"{name} is empty; give a path.")
    if "\0" in path:
        raise ArgumentError(f"{name} must be a path, but has a NUL character.")
    if len(path) > _LONGEST_PATH:
        raise ArgumentError(
            f"{name} must be a path of at most {_LONGEST_PATH} characters, but has {len(path)}."
        )
    return os.path.expanduser(path)


def tokens(name: str, value: Any) -> Tokens:
    """Return token ids in the form the core takes: an int32 array for an array of integers, else a
    list. The result is a copy, so `value` may change later. Raises ArgumentError."""
    if is_array(value) and value.ndim != 1:
        raise ArgumentError(f"{name} must have one dimension, not {value.ndim}.")
    if is_array(value) and value.dtype.kind in "iu":
        import numpy as np

        array = value.astype(np.int32)
        for i in np.flatnonzero(array != value)[:1]:
            integer(f"{name}[{i}]", value[i])
        return array
    if isinstance(value, (bytes, dict, set)) or not has_several(value):
        raise ArgumentError(f"{name} must be a str or token ids, not {type(value).__name__}.")
    return [integer(f"{name}[{i}]", token) for i, token in enumerate(value)]


def ranges(name: str, value: Any) -> list[tuple[int, int]]:
    """Return `value` as pairs of begin and end. Raises ArgumentError."""
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{name} must be a list of pairs, not {quoted(value)}.")
    pairs = []
    for i, one in enumerate(value):
        if not isinstance(one, (list, tuple)) or len(one) != 2:
            raise ArgumentError(f"{name}[{i}] must be a pair of numbers, not {quoted(one)}.")
        begin, end = (integer(f"{name}[{i}]", at, low=0) for at in one)
        pairs.append((begin, end))
    return pairs


def texts(name: str, value: Any) -> list[str]:
    """Return `value`, which is a str or several, as a list. Raises ArgumentError."""
    if value is None:
        return []
    if isinstance(value, str):
        value = [value]
    if isinstance(value, (bytes, dict)) or not has_several(value):
        raise ArgumentError(f"{name} must be a str or several, not {type(value).__name__}.")
    return [text(f"{name}[{i}]", one) for i, one in enumerate(value)]


def has_several(value: Any) -> bool:
    """Return whether a value is iterable. (A 0-d array only seems to be.)"""
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0
