"""Forked processes, and the threads of OpenMP."""

from __future__ import annotations

import ctypes
import os

from specllama import _core

_SOFT = 1
"""omp_pause_soft: the threads end, and settings stay."""


def release_helpers_at_fork() -> None:
    """Have a thread that forks release the threads that help it with decodes, which start anew when
    it decodes again. The forked process does not have them, but GCC's OpenMP would wait for them
    there: a session that was opened there would hang. (`multiprocessing` forks by default on Linux
    before Python 3.14.)

    Nothing happens if llama.cpp does without OpenMP, or with one older than 5.0.
    """
    runtime = ctypes.CDLL(_core.__file__)  # in which what it was linked to is found, too
    pause = getattr(runtime, "omp_pause_resource_all", None)
    if pause is not None and hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lambda: pause(_SOFT))
