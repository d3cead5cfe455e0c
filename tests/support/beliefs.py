"""What sessions believe of the machine, where a test must not depend on the clock."""

from __future__ import annotations

from pathlib import Path


def believe(file: Path, *seconds: float) -> None:
    """Change a curve in a cache: decodes of 1, 2, ... tokens take so many seconds. No session looks
    whether that is still so if there is one number only, or if they are long."""
    key, *_ = file.read_text().splitlines()
    file.write_text("\n".join([key, "0 0 0", *map(str, seconds)]))


def believe_wide_decodes_are_free(cache: Path) -> None:
    """Change the curves that sessions have left in their cache: all widths take as long."""
    for file in cache.glob("*.curve"):
        believe(file, *[0.2] * 65)
