"""The console script `specllama`."""

from __future__ import annotations


def main() -> int:
    """Load the command and run it; the exit code. Ctrl-C may come before all is loaded."""
    try:
        from specllama import __main__

        return __main__.main()
    except KeyboardInterrupt:
        return 130
