"""The page at `/`, whose parts are the files in `web`."""

from __future__ import annotations

from importlib.resources import files
from pathlib import PurePath

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from specllama.server.error import ApiError

PREFIX = "/page/"
"""Prefix of the paths of the page's parts."""

# The page loads nothing from elsewhere and talks to this server only. (Traces have inline styles.)
_POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def routes() -> list[Route]:
    """Return the paths of the page and its parts."""
    parts = {
        one.name: one.read_text(encoding="utf-8")
        for one in files("specllama.server").joinpath("web").iterdir()
    }

    async def show(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in parts:
            raise ApiError(404, f"GET {request.url.path} is not served here.")
        # No caching, so that an upgraded page shows at once.
        headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}
        return Response(parts[name], media_type=_TYPES[PurePath(name).suffix], headers=headers)

    return [Route("/", show), Route(PREFIX + "{name}", show)]
