"""Progress bars while a model loads."""

from __future__ import annotations

import io
import subprocess
import sys
import time

import pytest
from specllama._progress import Progress


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_the_progress_bar_is_cleared_when_loading_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Screen())

    def load() -> None:
        with Progress(True).load() as report:
            assert report is not None
            time.sleep(0.35)  # the bar appears after a delay
            report(0.5)
            assert "load  50 %" in screen.getvalue()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load()
    last = screen.getvalue().split("\r")[-2:]
    assert [one.strip() for one in last] == ["", ""]  # blanks over the bar, and back


def test_notebooks_show_progress_bars_without_a_terminal() -> None:
    script = """
import sys, time
sys.modules["ipykernel"] = sys  # identifies a notebook's kernel
from specllama._progress import Progress
with Progress(True).load() as report:
    time.sleep(0.35)
    report(0.5)
"""
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True
    )
    assert "load  50 %" in process.stdout + process.stderr
