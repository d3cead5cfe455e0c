"""A generation whose drafts come over HTTP: one request, one draft, one round."""

from __future__ import annotations

import asyncio
from typing import Any

from specllama import ClosedError, Handle
from specllama.formats.wire import MOST_DRAFTED, Digest, chunk_to_wire
from specllama.requests.round import Round
from specllama.server.error import ApiError
from specllama.server.fields import Fields
from specllama.server.verify.offered import Offered
from specllama.server.verify.opening import Opening


class Verification:
    """A generation that waits for a draft before each round but the first.

    If the last round is asked for again, its answer is the same: a client that lost its connection
    may repeat its last request.

    Attributes:
        client: The address of the client that opened it.
    """

    def __init__(self, opening: Opening, handle: Handle, client: str) -> None:
        self.client = client
        self._handle = handle
        self._prompt = opening.prompt
        self._generated = list(opening.generated)
        self._digest = Digest([*self._prompt, *self._generated])
        self._lock = asyncio.Lock()
        self._round = 0
        self._answer: dict[str, Any] = {}

    async def first(self) -> dict[str, Any]:
        """Wait for the round of the prompt and return its answer."""
        async with self._lock:
            return await self._next(0)

    @property
    def over(self) -> bool:
        """Whether no round will follow."""
        return self._handle.done()

    async def round(self, fields: Fields) -> dict[str, Any]:
        """Verify a draft and return the answer. Raises ApiError, and what ends the generation."""
        number = fields.integer("round", low=1, high=2**31 - 1)
        n = fields.integer("n", low=0, high=2**31 - 1)
        for name in ("round", "n", "hash"):
            fields.required(name)
        assert number is not None
        assert n is not None
        draft = Offered(fields, MOST_DRAFTED)
        async with self._lock:
            if number == self._round:
                return self._answer
            agreed = self._agreed(n, fields.text("hash"))
            if number != self._round + 1 or agreed != len(self._generated):
                raise DisagreementError(agreed, self._round)
            if self._answer["done"]:
                raise ApiError(410, "The generation is over.", code="gone")
            draft.leave(self._handle, len(self._prompt) + n, [])
            return await self._next(number)

    def end(self) -> None:
        """End the generation where it is."""
        self._handle.cancel()

    def _agreed(self, n: int, digest: str) -> int:
        """Return how many generated tokens are known to be the same on both sides: n, or 0."""
        if n == len(self._generated):
            own = self._digest
        elif n < len(self._generated):
            own = Digest([*self._prompt, *self._generated[:n]])
        else:
            return 0
        return n if str(own) == digest else 0

    async def _next(self, number: int) -> dict[str, Any]:
        rounds = await self._handle.next_rounds()
        if not rounds:
            raise ClosedError("The generation is over.")
        for one in rounds:
            self._generated += one.tokens
            self._digest.add(one.tokens)
            del self._generated[one.n_generated :]
        self._answer = {"round": number, **await answer(self._handle, rounds)}
        self._round = number  # last: after a failure, this number must not get the old answer
        return self._answer


class DisagreementError(ApiError):
    """Client and server do not have the same tokens or rounds."""

    def __init__(self, agreed: int, n_rounds: int) -> None:
        super().__init__(
            409, "Client and server are not at the same place; open the generation again.",
            code="disagreement",
        )  # fmt: skip
        self._where = {"agreed": agreed, "round": n_rounds}

    @property
    def body(self) -> dict[str, Any]:
        body = super().body
        return {**body, "error": {**body["error"], **self._where}}


async def answer(handle: Handle, rounds: list[Round]) -> dict[str, Any]:
    """Return the results of rounds as a JSON object. Raises ClosedError if the generation was
    cancelled."""
    last = rounds[-1]
    fields: dict[str, Any] = {
        "n": last.n_generated,
        "tokens": [token for one in rounds for token in one.tokens],
        "chunks": [chunk_to_wire(chunk) for one in rounds for chunk in one.chunks],
        "drafted": sum(one.drafted for one in rounds),
        "accepted": sum(one.accepted for one in rounds),
        "offered": sum(one.offered for one in rounds),
        "used": sum(one.used for one in rounds),
        "rounds": len(rounds),
        "seconds": sum(one.seconds for one in rounds),
        "done": last.done,
    }
    if last.held:
        fields["held"] = last.held
    if last.done:
        whole = await handle
        if whole.finish_reason is None:
            raise ClosedError("The generation was ended before its end.")
        fields["finish_reason"] = whole.finish_reason
        if whole.stop_string is not None:
            fields["stop_string"] = whole.stop_string
        fields["exact"] = whole.stats.exact
        fields["reused"] = whole.stats.reused_tokens
    return fields
