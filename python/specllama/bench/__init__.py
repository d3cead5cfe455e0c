"""The benchmark behind `specllama bench`."""

from __future__ import annotations

from specllama.measure.sequences import first_difference, repeated_share

__all__ = ["first_difference", "repeated_share"]
