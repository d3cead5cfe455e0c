"""Observes a generation step by step, for answers that report it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

from specllama import Stats
from specllama.requests.stream import GenerationState


class Watch:
    """Observes the steps of one generation, in the thread that runs it.

    Attributes:
        stats: The statistics after the last step; None before the first.
    """

    def __init__(self) -> None:
        self.stats: Stats | None = None
        self._began = 0.0
        self._in_prompt = True
        self._lock = Lock()
        self._news: list[dict[str, Any]] = []
        self._wake: Callable[[], object] | None = None

    def see(self, state: GenerationState) -> None:
        """Record the state of a generation that has just begun or made a step."""
        self.stats = stats = state.stream.stats
        if not self._in_prompt:
            return
        self._began = self._began or time.monotonic()
        self._in_prompt = state.stream.in_prompt
        n = state.stream.n_prefilled if self._in_prompt else stats.prompt_tokens
        progress = {
            "total": stats.prompt_tokens,
            "cache": stats.reused_tokens,
            "processed": min(n, stats.prompt_tokens),
            "time_ms": round(1000 * (time.monotonic() - self._began)),
        }
        with self._lock:
            self._news.append(progress)
            wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def progress(self) -> list[dict[str, Any]]:
        """Return the progress of reading the prompt since the last call, in llama-server's
        format."""
        with self._lock:
            news, self._news = self._news, []
        return news

    async def wait(self) -> None:
        """Wait until there is progress."""
        woken = asyncio.Event()
        with self._lock:
            if self._news:
                return
            self._wake = partial(asyncio.get_running_loop().call_soon_threadsafe, woken.set)
        await woken.wait()
