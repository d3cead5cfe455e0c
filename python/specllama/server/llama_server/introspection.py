"""Paths that describe the model and the tokens of texts to front ends. Most are llama-server's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from specllama import SpecSession, _check
from specllama.dialogue.conversation import described_format
from specllama.model.media_prompt import n_rows
from specllama.server.anthropic.input import read_conversation
from specllama.server.body.body_reader import BodyReader
from specllama.server.body.conversation import read_chat
from specllama.server.body.fields import Fields
from specllama.server.error import encoded
from specllama.server.paths import COUNT_TOKENS
from specllama.server.settings import Settings


class Introspection:
    """Serves /tokenize, /detokenize, /apply-template, /v1/messages/count_tokens, and the fields of
    /props that apply here.

    Args:
        session: The session.
        settings: The server's settings, with the model's name.
        body_reader: Reads the requests.
    """

    def __init__(self, session: SpecSession, settings: Settings, body_reader: BodyReader) -> None:
        self._session = session
        self._settings = settings
        self._body_reader = body_reader

    @property
    def routes(self) -> list[Route]:
        """The routes of these paths."""
        return [
            Route("/tokenize", self._tokenize, methods=["POST"]),
            Route("/detokenize", self._detokenize, methods=["POST"]),
            Route("/apply-template", self._apply_template, methods=["POST"]),
            *(Route(path, self._count_tokens, methods=["POST"]) for path in COUNT_TOKENS),
            Route("/props", self._props),
        ]

    async def _tokenize(self, request: Request) -> Response:
        def tokenize(fields: Fields) -> list[Any]:
            special = fields.flag("add_special"), fields.flag("parse_special", default=True)
            tokens = self._session.tokenize(
                _check.text("content", fields.text("content")),
                add_special=special[0],
                parse_special=special[1],
                plain=fields.any("plain") or (),
            )
            if not fields.flag("with_pieces"):
                return tokens
            return [{"id": one, "piece": _piece(self._session.token_bytes(one))} for one in tokens]

        return await self._answer(request, "tokens", tokenize)

    async def _detokenize(self, request: Request) -> Response:
        def detokenize(fields: Fields) -> str:
            tokens = fields.any("tokens")
            if not isinstance(tokens, list):
                fields.required("tokens")
                fields.refuse("tokens", "a list of token ids")
            return self._session.detokenize(tokens, special=fields.flag("special"))

        return await self._answer(request, "content", detokenize)

    async def _apply_template(self, request: Request) -> Response:
        def render(fields: Fields) -> str:
            text = read_chat(self._session, fields).shown
            # As in llama-server: continuing a text adds BOS again.
            return text.removeprefix(self._session.chat_template.begin)

        return await self._answer(request, "prompt", render)

    async def _count_tokens(self, request: Request) -> Response:
        def count(fields: Fields) -> int:
            return n_rows(read_conversation(self._session, fields).prompt())

        return await self._answer(request, "input_tokens", count)

    async def _answer(
        self, request: Request, name: str, make: Callable[[Fields], object]
    ) -> Response:
        """Answer a request with one field. A function computes its value from the request's
        fields."""
        answer = await self._body_reader.read(request, lambda fields: encoded({name: make(fields)}))
        return Response(answer, media_type="application/json")

    async def _props(self, request: Request) -> Response:
        session = self._session
        return JSONResponse({
            "default_generation_settings": {"n_ctx": session.n_ctx},
            "total_slots": session.n_seq,
            "model_alias": self._settings.name,
            "model_path": self._settings.name,
            "chat_template": session.chat_template_source or "",
            "modalities": {"vision": session.sees, "audio": session.hears},
            "build_info": "specllama",
            **described_format(session),
        })  # fmt: skip


def _piece(piece: bytes) -> str | list[int]:
    """Return the text that a token adds, or its bytes if they are not complete UTF-8."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)
