"""A model of the server, loaded or not."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from specllama.server.error import ApiError
from specllama.server.models.child import Child

State = Literal["unloaded", "loading", "loaded", "stopping", "sleeping"]


@dataclass(frozen=True)
class ModelEntry:
    """A model in the server's settings.

    Attributes:
        name: Its name in requests.
        arguments: Its arguments of `specllama serve`.
        path: Its file; it may be missing, for example before it is downloaded.
        load_on_startup: Whether it is loaded when the server starts.
    """

    name: str
    arguments: Sequence[str]
    path: Path
    load_on_startup: bool = False


@dataclass(eq=False)
class ServedModel:
    """A model, and its process while it is loaded.

    Attributes:
        entry: The model in the server's settings.
        state: Its state; "stopping" while its process ends.
        child: Its process, from "loading" to "stopping".
        n_users: Number of its requests in progress.
        places: Requests that wait for it; each gets the process.
        wanted_since: When the first of them arrived, by the event loop's clock.
        draining: Whether it is to make room for another model; new requests wait.
        last_used: When a request last began or ended, by the same clock.
        failed: The error of the last attempt to load it; None if that succeeded.
        failed_at: When that error occurred, by the same clock.
        cards: Its descriptions of itself, by path; kept when it is unloaded.
        idle: Seconds without a request after which it is unloaded, from the last request with
            `keep_alive`; None: the server's default.
        timer: Unloads it after this time.
    """

    entry: ModelEntry
    state: State = "unloaded"
    child: Child | None = None
    n_users: int = 0
    places: deque[asyncio.Future[Child]] = field(default_factory=deque)
    wanted_since: float = 0.0
    draining: bool = False
    last_used: float = 0.0
    failed: ApiError | None = None
    failed_at: float = 0.0
    cards: dict[str, Any] = field(default_factory=dict)
    idle: float | None = None
    timer: asyncio.TimerHandle | None = None

    @property
    def name(self) -> str:
        """The model's name."""
        return self.entry.name

    @property
    def occupies(self) -> bool:
        """Whether it counts as a loaded model."""
        return self.state in ("loading", "loaded", "stopping")
