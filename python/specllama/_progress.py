"""Progress of loading and of long prompts."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from time import time
from typing import Any

from specllama import _check
from specllama.errors import ArgumentError


def bar(**options: Any) -> Any:
    """Return a tqdm bar that disappears at its end: a notebook bar in a notebook, else one on
    stderr if that is a terminal.

    Args:
        **options: Options of tqdm.
    """
    if not _in_notebook():
        from tqdm import tqdm
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of text bars if ipywidgets is missing
            from tqdm.auto import tqdm
    return tqdm(leave=False, **({"disable": False if _in_notebook() else None} | options))


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


def _is_seen() -> bool:
    return _in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


class Progress:
    """Reports progress as the user chose: not at all, by a bar on stderr, or to a function.

    Args:
        wish: False, True, or a function of the stage and the fraction done.
    """

    def __init__(self, wish: bool | Callable[[str, float], object]) -> None:
        if not callable(wish) and not isinstance(wish, bool):
            raise ArgumentError(
                f"progress must be True, False or a function, not {_check.quoted(wish)}."
            )
        if callable(wish) and not _takes_both(wish):
            raise ArgumentError("progress must be a function of a stage and a fraction.")
        self._wish = wish

    @contextmanager
    def load(self) -> Iterator[Callable[[float], None] | None]:
        """Give the function to call while loading; None for no reports. A bar is removed at the end
        of the `with` statement, also after an error."""
        report = self._reporter("load", delay=0.3)
        try:
            yield report
        finally:
            if isinstance(report, _Bar):
                report.close()

    def prefill(self) -> Callable[[float], None] | None:
        """Return the function to call during a prefill; None for no reports."""
        return self._reporter("prefill", delay=1.0)

    def _reporter(self, stage: str, delay: float) -> Callable[[float], None] | None:
        wish = self._wish
        if isinstance(wish, bool):
            return _Bar(stage, delay) if wish else None

        def report(fraction: float) -> None:
            wish(stage, fraction)

        return report


def _takes_both(function: Callable[..., object]) -> bool:
    """Whether the function can be called with a stage and a fraction; True if unknown."""
    try:
        declared = signature(function)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return True
    try:
        declared.bind("load", 0.0)
    except TypeError:
        return False
    return True


class _Bar:
    """A tqdm bar for fractions. It appears after `delay` seconds and closes itself at 1. Before
    that, and without a terminal or notebook, tqdm is not imported."""

    def __init__(self, stage: str, delay: float) -> None:
        self._stage = stage
        self._start = time()
        self._delay = delay if _is_seen() else float("inf")
        self._bar: Any = None

    def __call__(self, fraction: float) -> None:
        if self._bar is None:
            if time() - self._start < self._delay:
                return
            form = "{desc} {percentage:3.0f} %|{bar}| {elapsed}"
            self._bar = bar(total=1.0, initial=fraction, desc=self._stage, bar_format=form)
            self._bar.start_t = self._start
        self._bar.update(fraction - self._bar.n)
        if fraction >= 1.0:
            self.close()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
