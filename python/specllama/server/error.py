"""Errors in the formats of OpenAI's, Anthropic's and Ollama's APIs."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Scope

from specllama.errors import ClosedError, DecodeError, QueueFullError, SpecllamaError

log = logging.getLogger("specllama.server")
"""The server's log: one line (INFO) for each request that it answers or refuses."""

_OTHER_NAMES = {
    "json_schema": (
        "response_format", "guided_json", "structured_outputs", "text", "output_config",
        "output_format",
    ),
    "grammar": (
        "response_format", "tools", "guided_grammar", "guided_choice", "ebnf", "structured_outputs",
        "text", "output_config", "output_format",
    ),
    "regex": ("guided_regex", "structured_outputs"),
    "stop": ("stop_sequences",),
    "spec_length": ("speculative.n_max",),
    "spec_type": ("speculative.type",),
    "template_args": ("chat_template_kwargs",),
}  # fmt: skip
"""Fields of requests with which a client may have set an option of a generation."""

_CONSTRAINTS = {
    "grammar": ("grammar", *_OTHER_NAMES["grammar"]),
    "logit_bias": ("logit_bias",),
}
"""Options that may leave no token to choose, and the fields with which a client sets them."""

_OF_ANTHROPIC = re.compile(r"(/v1)?/messages(/.*)?", re.DOTALL)
"""Paths whose errors have Anthropic's format."""

_OF_OLLAMA = re.compile(r"/api/.*", re.DOTALL)
"""Paths whose errors have Ollama's format."""

_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    500: "api_error",
    503: "overloaded_error",
}
"""Anthropic's names of errors, by status. The others are invalid requests."""


class ApiError(Exception):
    """The reason why a request is not answered.

    Args:
        status: HTTP status.
        message: One sentence: what is wrong and what to do.
        param: The invalid field; None: not a single field.
        code: A word that programs can check.
    """

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(_sendable(message))
        self.status = status
        self.param = None if param is None else _sendable(param)
        self.code = code

    @classmethod
    def of(cls, error: SpecllamaError, given: Collection[str] = ()) -> ApiError:
        """Return the error to send for a session's error. given: The fields of the request."""
        if isinstance(error, QueueFullError):
            return cls(503, "The server is busy; try again later.", code="server_overloaded")
        if isinstance(error, ClosedError):
            return cls(503, str(error), code="request_ended")
        # An error message names the invalid option before any other.
        words = re.findall(r"\w+", str(error))
        if isinstance(error, DecodeError):
            names = (name for word in words for name in _CONSTRAINTS.get(word, ()))
        else:
            names = (name for word in words for name in (word, *_OTHER_NAMES.get(word, ())))
        param = next((name for name in names if name in given), None)
        if isinstance(error, ValueError) or (isinstance(error, DecodeError) and param):
            return cls(400, str(error), param=param)
        return cls(500, str(error), code=type(error).__name__)

    @property
    def body(self) -> dict[str, Any]:
        """The body of the answer, in OpenAI's format."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {
            "error": {
                "message": str(self),
                "type": kind,
                "param": self.param,
                "code": self.code,
            },
        }

    @property
    def anthropic_body(self) -> dict[str, Any]:
        """The same in Anthropic's format."""
        kind = _KINDS.get(self.status, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": str(self)}}

    @property
    def ollama_body(self) -> dict[str, Any]:
        """The same in Ollama's format."""
        return {"error": str(self)}

    def note(self, scope: Scope) -> None:
        """Add this error to the request's line in the log."""
        scope.setdefault("state", {})["error"] = str(self)

    def response(self, scope: Scope) -> JSONResponse:
        """Return the answer to a request, in the format of its path. The error is also logged,
        because not every client shows it."""
        self.note(scope)
        headers = {"Retry-After": "1"} if self.status == 503 else None
        return JSONResponse(self._body_for(scope["path"]), self.status, headers)

    def in_stream(self, scope: Scope, media_type: bytes) -> bytes | None:
        """Return the error as a part of a streamed answer; None if answers of this type are not
        streamed."""
        body = self._body_for(scope["path"])
        if media_type.startswith(b"text/event-stream"):
            named = f"event: {body['type']}\n".encode() if "type" in body else b""
            return named + b"data: " + encoded(body) + b"\n\n"
        return encoded(body) + b"\n" if media_type.startswith(b"application/x-ndjson") else None

    def _body_for(self, path: str) -> dict[str, Any]:
        if _OF_ANTHROPIC.fullmatch(path):
            return self.anthropic_body
        return self.ollama_body if _OF_OLLAMA.fullmatch(path) else self.body


@lru_cache(maxsize=1024)
def log_once(sentence: str) -> None:
    """Log a sentence only once, even if clients cause it repeatedly."""
    log.warning("%s", printable(sentence))


def leave_out(what: str) -> None:
    """Log that parts of requests are ignored."""
    log_once(f"Ignored in requests: {what}.")


def encoded(data: Mapping[str, Any]) -> bytes:
    """Return JSON in ASCII: it may quote a client's text, even half a surrogate pair."""
    return json.dumps(data, separators=(",", ":")).encode()


def printable(text: str) -> str:
    """Return a text in one line, with unprintable characters escaped."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _sendable(text: str) -> str:
    """Return a text with lone surrogates escaped; errors may quote a client's text."""
    return text.encode(errors="backslashreplace").decode()
