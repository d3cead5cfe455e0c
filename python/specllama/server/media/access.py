"""What reading the media of requests needs of the server."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field

from specllama.server.error import ApiError

MOST_URLS = 16
"""Most addresses of images in a request."""

_MOST_HELD = 1 << 30


class HeldMedia:
    """Bounds the memory of the media of all requests that wait and are answered."""

    def __init__(self) -> None:
        # No counter: a thread that is stopped between counting and giving back would leave it high.
        self._sizes: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def hold(self, medium: object, n_bytes: int) -> None:
        """Count a medium until it is collected. Raises ApiError if there is no room for it."""
        with self._lock:
            if sum(self._sizes.values()) + n_bytes > _MOST_HELD:
                raise ApiError(
                    503, "The server is busy with other images; try again later.",
                    code="server_overloaded",
                )  # fmt: skip
            self._sizes[medium] = n_bytes


@dataclass(frozen=True)
class MediaAccess:
    """What a request's media may come from, and where they are counted.

    Attributes:
        held: The media of all requests.
        downloaded: Images that were downloaded for this request, by their addresses; None:
            addresses are refused.
    """

    held: HeldMedia = field(default_factory=HeldMedia)
    downloaded: Mapping[str, bytes] | None = None


class WantedImages(Exception):  # noqa: N818
    """Raised where a request can only be read with images that are not downloaded yet.

    Args:
        fields: For each address, a field that has it.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__()
        self.fields = fields
