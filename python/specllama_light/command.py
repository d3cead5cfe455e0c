"""The console script `specllama`."""

from __future__ import annotations

import os
import signal


def main() -> int:
    """Load the command and run it; the exit code.

    Ctrl-C may come before all is loaded. It ends the process at once then: raised inside an
    extension module's initialization, KeyboardInterrupt would come out as an ImportError.
    """
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:  # else it is ignored, as behind nohup
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        from specllama import __main__
    finally:
        signal.signal(signal.SIGINT, interrupt)
    try:
        return __main__.main()
    except KeyboardInterrupt:
        return 130
