"""Values of NumPy, told from others without importing it, which takes longer than all other imports
together: who has such a value has imported it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from numpy.typing import NDArray


def is_array(value: Any) -> TypeGuard[NDArray[Any]]:
    """Return whether it is an array of NumPy."""
    return _is_a("ndarray", value)


def is_bool(value: Any) -> bool:
    """Return whether it is a bool of Python or of NumPy."""
    return isinstance(value, bool) or _is_a("bool_", value)


def _is_a(name: str, value: Any) -> bool:
    # Another thread may be importing it, so it may lack names.
    return isinstance(value, getattr(sys.modules.get("numpy"), name, ()))
