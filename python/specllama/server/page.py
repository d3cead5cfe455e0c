"""The page at `/`. Its parts are the files in `web`."""

from __future__ import annotations

from pathlib import Path, PurePath

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from specllama.formats import trace_page
from specllama.server.error import ApiError

PREFIX = "/page/"
"""Prefix of the paths of the page's parts."""

# The page connects only to this server and loads nothing from other hosts. Only DOMPurify turns
# text into elements. Images are those that the user adds to a message.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
_FOLDER = Path(__file__).with_name("web")
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-cache",  # so that a new version of the page is used at once
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def routes() -> list[Route]:
    """Return the paths of the page and its parts."""
    parts = {
        one.relative_to(_FOLDER).as_posix(): one.read_text(encoding="utf-8")
        for one in _FOLDER.rglob("*")
        if one.suffix in _TYPES
    }
    parts["trace.css"] = trace_page.STYLE

    async def show(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in parts:
            raise ApiError(404, f"GET {request.url.path} is not served here.")
        return Response(parts[name], media_type=_TYPES[PurePath(name).suffix], headers=_HEADERS)

    return [Route("/", show), Route(PREFIX + "{name:path}", show)]
