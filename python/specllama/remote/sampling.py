"""The options of sampling by their names, for whoever hands them on."""

from __future__ import annotations

from typing import Any

from specllama import _core


def named(options: _core.SamplingOptions) -> dict[str, Any]:
    """Return all options, as they are named in `GenerateOptions`."""
    return {name: getattr(options, name) for name in dir(options) if not name.startswith("_")}
