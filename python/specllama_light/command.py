"""The console scripts `specllama` and `spec-cli`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def _ends_at_once() -> Iterator[None]:
    """While it lasts, Ctrl-C ends the process at once: raised inside an extension module's
    initialization, KeyboardInterrupt would come out as an ImportError."""
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:  # else it is ignored, as behind nohup
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, interrupt)


def main() -> int:
    """Load `specllama` and run it; the exit code."""
    try:
        with _ends_at_once():
            from specllama import __main__
        return __main__.main()
    except KeyboardInterrupt:
        return 130


def spec_cli() -> NoReturn:
    """Become `spec-cli`."""
    try:
        with _ends_at_once():
            from specllama.commands import spec_cli
        spec_cli.main()
    except KeyboardInterrupt:
        sys.exit(130)
