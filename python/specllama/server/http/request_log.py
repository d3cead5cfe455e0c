"""One line in the log for each request, without the texts of prompt and answer."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specllama import Handle, Stats
from specllama.server.error import log, printable


def state_of(scope: Scope) -> dict[str, Any]:
    """Return the state of a request. The log reads `handles`, its generations, and `error`, the
    reason of a refusal, from it."""
    state: dict[str, Any] = scope.setdefault("state", {})
    return state


class RequestLog:
    """Logs each request after its answer: method, path, status, tokens, seconds. Successful
    requests without a generation are logged at the level DEBUG: pages, monitors and remote sessions
    send them all the time.

    Args:
        app: The application that answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            handles: list[Handle] = state_of(scope).get("handles", [])
            level = logging.INFO if handles or status >= 400 else logging.DEBUG
            seconds = time.monotonic() - began
            if handles and log.isEnabledFor(level):
                # Generations end a little after their client disconnects.
                _when_ended(handles, lambda: log.log(level, "%s", _line(scope, status, seconds)))
            else:
                log.log(level, "%s", _line(scope, status, seconds))


def _when_ended(handles: Sequence[Handle], action: Callable[[], None]) -> None:
    """Call a function when all generations have ended, in the thread in which the last one does."""
    left = itertools.count(len(handles) - 1, -1)

    def count(_: Handle) -> None:
        if next(left) == 0:
            action()

    for handle in handles:
        handle.add_done_callback(count)


def _line(scope: Scope, status: int, seconds: float) -> str:
    state = state_of(scope)
    asked = f"{scope['method']} {scope['path']}: {status or 'client disconnected'}"
    parts = [asked, *_figures(state.get("handles", ())), f"{seconds:.2f} s"]
    if "error" in state:
        parts.append(state["error"])
    return printable(", ".join(parts))


def _figures(handles: Sequence[Handle]) -> list[str]:
    """Return the figures of all generations together, even of those that were cut."""
    found: list[Stats] = [one.stats for handle in handles if (one := handle.so_far()) is not None]
    if not found:
        return []
    prompt, reused, generated, drafted, accepted = (
        sum(getattr(one, name) for one in found)
        for name in ("prompt_tokens", "reused_tokens", "generated_tokens", "drafted", "accepted")
    )
    figures = [f"prompt {prompt} tokens ({reused} cached)", f"answer {generated} tokens"]
    if drafted:
        figures.append(f"{accepted} of {drafted} drafted accepted")
    if len(found) == 1:
        figures.append(f"{found[0].tokens_per_second:.1f} tokens/s")
    return figures
