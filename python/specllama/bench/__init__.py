"""The benchmark: `specllama bench`."""

from __future__ import annotations

from specllama.bench.command import add_command

__all__ = ["add_command"]
