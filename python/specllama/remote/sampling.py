"""The options of sampling by their names, for whoever hands them on."""

from __future__ import annotations

from typing import Any

from specllama import _core


def named(options: _core.SamplingOptions) -> dict[str, Any]:
    """Return all options, as they are named in `GenerateOptions`."""
    return {one.name: getattr(options, one.name) for one in _core.sampling_options()}
