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
    """Let Ctrl-C end the process at once during the block. A KeyboardInterrupt inside an extension
    module's initialization would become an ImportError."""
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:  # otherwise it is ignored, as under nohup
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, interrupt)


def main() -> int:
    """Load and run `specllama`; return the exit code."""
    try:
        with _ends_at_once():
            from specllama import __main__
        return __main__.main()
    except KeyboardInterrupt:
        return 130


def spec_cli() -> NoReturn:
    """Replace the process by `spec-cli`."""
    try:
        with _ends_at_once():
            from specllama.commands import spec_cli
        spec_cli.main()
    except KeyboardInterrupt:
        sys.exit(130)
