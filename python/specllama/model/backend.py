"""What a session of the core has besides if its target is elsewhere (see the folder remote/)."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class RemoteBackend(Protocol):
    """A session of the core whose rounds wait for a server."""

    def hang_up(self) -> None:
        """Make the rounds under way fail at once, and all later ones; from any thread."""
