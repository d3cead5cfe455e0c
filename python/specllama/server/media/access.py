"""Memory limits and downloads for the media of requests."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field

from specllama.server.error import ApiError

MOST_URLS = 16
"""Maximum number of image URLs in a request."""

_MOST_HELD = 1 << 30


class HeldMedia:
    """Bounds the memory for the media of all requests, queued or running."""

    def __init__(self) -> None:
        # Not a counter: it would stay too high if a thread is stopped before counting down.
        self._sizes: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def hold(self, medium: object, n_bytes: int) -> None:
        """Count a medium until it is garbage-collected. Raises ApiError if there are too many
        bytes."""
        with self._lock:
            if sum(self._sizes.values()) + n_bytes > _MOST_HELD:
                raise ApiError(
                    503, "The server is busy with other images; try again later.",
                    code="server_overloaded",
                )  # fmt: skip
            self._sizes[medium] = n_bytes


@dataclass(frozen=True)
class MediaAccess:
    """Where a request's media may come from, and where their memory is counted.

    Attributes:
        held: The media of all requests.
        downloaded: Images that were downloaded for this request, by URL; None: URLs are refused.
    """

    held: HeldMedia = field(default_factory=HeldMedia)
    downloaded: Mapping[str, bytes] | None = None


class WantedImages(Exception):  # noqa: N818
    """Raised if a request has images that are not downloaded yet.

    Args:
        fields: For each URL, a field that has it.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__()
        self.fields = fields
