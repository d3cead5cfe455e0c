"""What sessions believe of the machine, where a test must not depend on the clock."""

from __future__ import annotations

from pathlib import Path


def believe_wide_decodes_are_free(cache: Path) -> None:
    """Change the curves that sessions have left in their cache: all widths take as long: so long
    that no session looks whether that is still so."""
    for file in cache.iterdir():
        key, *_ = file.read_text().splitlines()
        file.write_text("\n".join([key, "0 0 0", *["0.2"] * 65]))
