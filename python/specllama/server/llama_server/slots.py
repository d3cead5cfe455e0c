"""/slots: the parts of the KV memory, and files of their contents, as in llama-server."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from specllama import BusyError, SpecllamaError, SpecSession
from specllama.requests.background import queue_load
from specllama.server.body.body_reader import BodyReader
from specllama.server.body.fields import Fields
from specllama.server.error import ApiError
from specllama.server.settings import Settings

_LONGEST_NAME = 200

# By action: the function, and the answer's fields for the numbers of tokens and bytes.
_TRANSFERS = {
    "save": (SpecSession.save_state, "n_saved", "n_written"),
    "restore": (SpecSession.load_state, "n_restored", "n_read"),
}


class Slots:
    """Lists the slots, and saves, restores and erases their contents.

    Args:
        session: The session.
        settings: The server's settings, with the folder of the files.
        body_reader: Reads the requests.
    """

    def __init__(self, session: SpecSession, settings: Settings, body_reader: BodyReader) -> None:
        self._session = session
        self._folder = settings.slot_save_path
        self._body_reader = body_reader
        self._one_at_a_time = asyncio.Semaphore(1)  # a state is as large as the memory of a slot

    @property
    def routes(self) -> list[Route]:
        """The routes of these paths."""
        return [
            Route("/slots", self._list),
            Route("/slots/{id}", self._act, methods=["POST"]),
        ]

    async def _list(self, request: Request) -> Response:
        in_use = queue_load(self._session).slots
        return JSONResponse([
            {"id": i, "n_ctx": self._session.n_ctx, "is_processing": i in in_use}
            for i in range(self._session.n_seq)
        ])  # fmt: skip

    async def _act(self, request: Request) -> Response:
        slot = self._slot(request.path_params["id"])
        action = request.query_params.get("action")
        if action == "erase":
            n_erased = await self._done(lambda: self._session.erase_slot(slot))
            return JSONResponse({"id_slot": slot, "n_erased": n_erased})
        if action not in _TRANSFERS:
            raise ApiError(400, "action must be save, restore or erase.", param="action")
        if self._folder is None:
            raise ApiError(
                501,
                "Saving slots is disabled; start the server with --slot-save-path FOLDER.",
                code="not_supported",
            )
        name = _file_name(await self._body_reader.fields(request))
        return JSONResponse(await self._done(lambda: self._transferred(action, slot, name)))

    def _slot(self, given: str) -> int:
        n = self._session.n_seq
        if not (given.isascii() and given.isdigit() and len(given) < 4 and int(given) < n):
            raise ApiError(404, f"There is no slot {given!r:.40}; the slots are 0 to {n - 1}.")
        return int(given)

    async def _done(self, work: Callable[[], Any]) -> Any:
        async with self._one_at_a_time:
            try:
                return await run_in_threadpool(work)
            except BusyError as error:
                raise ApiError(409, str(error), code="slot_in_use") from None
            except SpecllamaError as error:
                # The path of the folder is not for clients.
                report = ApiError.of(error)
                text = str(report).replace(f"{self._folder}{os.sep}", "")
                raise ApiError(report.status, text, code=report.code) from None

    def _transferred(self, action: str, slot: int, name: str) -> dict[str, Any]:
        path = self._path(name)
        if action == "restore" and not path.exists():
            raise ApiError(404, f'There is no file "{name}".', param="filename", code="not_found")
        transfer, tokens, size = _TRANSFERS[action]
        began = time.monotonic()
        n_tokens = transfer(self._session, path, slot=slot)
        return {
            "id_slot": slot,
            "filename": name,
            tokens: n_tokens,
            size: path.stat().st_size,
            "timings": {f"{action}_ms": 1000 * (time.monotonic() - began)},
        }

    def _path(self, name: str) -> Path:
        """Return the path of a file in the folder. Raises ApiError if it is not a plain file."""
        assert self._folder is not None
        path = self._folder / name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise ApiError(
                400, f'"{name}" is not a plain file; use another name.', param="filename"
            )
        return path


def _file_name(fields: Fields) -> str:
    """Return the field `filename`. Raises ApiError if it does not name a file in the folder."""
    fields.required("filename")
    name = fields.text("filename")
    plain = name.isprintable() and not name.startswith(".") and not set(name) & set('/\\:*?"<>|')
    if not plain or not 0 < len(name.encode(errors="replace")) <= _LONGEST_NAME:
        fields.refuse(
            "filename",
            f"a file name of 1 to {_LONGEST_NAME} bytes, without a folder, that does not "
            "begin with a dot",
        )
    return name
