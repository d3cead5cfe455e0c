"""A model that the server knows, loaded or not."""

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
    """A model as the server was given it.

    Attributes:
        name: Its name in requests.
        arguments: Those of `specllama serve` for it.
        path: Its file; it need not be there, as for one that is yet to be downloaded.
        load_on_startup: Whether it is loaded before a request wants it.
    """

    name: str
    arguments: Sequence[str]
    path: Path
    load_on_startup: bool = False


@dataclass(eq=False)
class ServedModel:
    """A model, and its process while it is loaded.

    Attributes:
        entry: What the server was given.
        state: What it is doing; "stopping" if its process is ending.
        child: Its process, from "loading" to "stopping".
        n_users: Requests that are being answered.
        places: Requests that wait for it; each gets the process.
        wanted_since: When the first of them came, by the event loop's clock.
        draining: Whether its place is wanted for another model: new requests wait.
        last_used: When a request last began or ended, by the same clock.
        failed: Why it could not be loaded the last time; None: it could.
        failed_at: When that was.
        cards: What its process said about it, by path; kept while it is not loaded.
        idle: Seconds without a request after which it is unloaded, as the latest request that said
            so wants it; None: as the server was given it.
        timer: Puts it to sleep.
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
        """Whether it takes one of the places of loaded models."""
        return self.state in ("loading", "loaded", "stopping")
