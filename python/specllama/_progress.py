"""Progress of loading and of long prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from specllama.errors import ArgumentError


class Progress:
    """Reports to what the user asked for: nothing, a bar on stderr, or a function.

    Args:
        wish: False, True, or a function of stage and fraction done.
    """

    def __init__(self, wish: bool | Callable[[str, float], object]) -> None:
        if not callable(wish) and not isinstance(wish, bool):
            raise ArgumentError(f"progress must be True, False or a function, not {wish!r}.")
        self._wish = wish

    def reporter(self, stage: str, delay: float) -> Callable[[float], None] | None:
        """Return a function of the fraction done; a bar appears after `delay` seconds."""
        wish = self._wish
        if callable(wish):
            return lambda fraction: (wish(stage, fraction), None)[1]
        return _Bar(stage, delay).show if wish else None

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[[float], None] | None]:
        """Report a stage that lasts as long as the block."""
        yield self.reporter(name, delay=0.3)

    def prefill(self) -> Callable[[float], None] | None:
        """Return what is to be told of a prefill, if anybody wants to hear of it."""
        return self.reporter("prefill", delay=1.0)


class _Bar:
    """A tqdm bar over fractions that closes itself at 1."""

    def __init__(self, stage: str, delay: float) -> None:
        from tqdm import tqdm

        self._bar: Any = tqdm(
            total=1.0,
            desc=stage,
            leave=False,
            delay=delay,
            disable=None,  # where stderr is no terminal
            bar_format=("{desc} {percentage:3.0f} %|{bar}| {elapsed}"),
        )

    def show(self, fraction: float) -> None:
        self._bar.update(fraction - self._bar.n)
        if fraction >= 1.0:
            self._bar.close()
