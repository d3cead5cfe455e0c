"""The benchmark: `specllama bench`."""

from __future__ import annotations

from specllama.bench.arithmetic import first_difference, repeated_share
from specllama.bench.command import add_command

__all__ = ["add_command", "first_difference", "repeated_share"]
