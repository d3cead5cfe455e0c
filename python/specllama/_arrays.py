"""Recognises NumPy values without importing NumPy, which takes longer than all other imports
together. If a caller has such a value, NumPy is already imported."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from numpy.typing import NDArray


def is_array(value: Any) -> TypeGuard[NDArray[Any]]:
    """Return whether a value is a NumPy array."""
    return _is_a("ndarray", value)


def is_bool(value: Any) -> bool:
    """Return whether a value is a bool of Python or NumPy."""
    return isinstance(value, bool) or _is_a("bool_", value)


def _is_a(name: str, value: Any) -> bool:
    # Another thread may be importing NumPy, so names may be missing.
    return isinstance(value, getattr(sys.modules.get("numpy"), name, ()))
