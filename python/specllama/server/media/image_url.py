"""URLs of images in requests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

from specllama.server.error import ApiError

_LONGEST = 4096
_HOST = re.compile(r"[a-z0-9_.-]+|[a-f0-9:.]+")
_AS_THEY_ARE = "%/:=&~+!$,;'@()*"


@dataclass(frozen=True)
class ImageUrl:
    """An HTTP URL, split into parts.

    Attributes:
        url: The URL as text.
        scheme: "http" or "https".
        host: Name or IP address.
        port: The port.
        target: Path and query.
    """

    url: str
    scheme: str
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, field: str, url: str) -> ImageUrl:
        """Parse a URL, given in a field. Raises ApiError."""
        wrong = ApiError(
            400,
            f'{field} must be a data URL or an address like "https://example.com/image.png", not '
            f"{url[:80]!r}.",
            param=field,
        )
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").encode("idna").decode(), parts.port
        except ValueError:  # also from the idna codec
            raise wrong from None
        if (
            len(url) > _LONGEST
            or not url.isprintable()
            or parts.scheme not in ("http", "https")
            or not _HOST.fullmatch(host)
            or parts.username is not None
            or port == 0
        ):
            raise wrong
        target = quote(parts.path or "/", safe=_AS_THEY_ARE)
        if parts.query:
            target += "?" + quote(parts.query, safe=_AS_THEY_ARE + "?")
        default = 443 if parts.scheme == "https" else 80
        return cls(url, parts.scheme, host, port or default, target)

    def joined(self, field: str, location: str) -> ImageUrl:
        """Return the URL that an answer redirects to. Raises ApiError."""
        try:
            return self.parse(field, urljoin(self.url, location))
        except ValueError:
            raise ApiError(400, f"{field} redirects to an invalid URL.", param=field) from None
