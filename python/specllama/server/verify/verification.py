"""A generation that is drafted remotely. Each request has one draft, for one round."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from specllama import ClosedError, Generation, Handle, SpecSession, _core
from specllama.formats.wire import Digest, logprobs_to_wire
from specllama.requests.background import submitted, verification
from specllama.requests.queued_request import QueuedRequest
from specllama.server.body.fields import Fields
from specllama.server.error import ApiError
from specllama.server.verify.draft import draft_of
from specllama.server.verify.opening import Opening


class Verification:
    """A remote generation, verified round by round. Between two rounds it only keeps its tokens:
    each round is a separate request to the session, which finds the text in its KV memory.

    A repeated request for the last round gets the same answer, so a client may repeat it after
    losing its connection.

    Args:
        session: The session.
        opening: The request of the client.
        client: The address of the client that opened it.
        count: Called with the result of each round, and whether it is the first.

    Attributes:
        client: The address of the client that opened it.
        over: Whether no round will follow.
    """

    def __init__(
        self,
        session: SpecSession,
        opening: Opening,
        client: str,
        count: Callable[[Generation, bool], object],
    ) -> None:
        self.client = client
        self.over = False
        self._session = session
        self._opening = opening
        self._count = count
        self._generated = list(opening.generated)
        self._digest = Digest()
        self._lock = asyncio.Lock()
        self._round = 0
        self._answer: dict[str, Any] = {}
        self._handle: Handle | None = None

    def prepare(self) -> list[QueuedRequest]:
        """Check the prompt and return its round. Raises ArgumentError."""
        jobs = self._job(_core.RequestDraft(tokens=[], branches=[]))
        self._digest.add(
            [*self._opening.prompt, *self._generated]
        )  # after the check: they are valid tokens
        return jobs

    async def first(self, jobs: list[QueuedRequest]) -> dict[str, Any]:
        """Run the round that `prepare` returned, and return its answer."""
        async with self._lock:
            return await self._run(0, jobs, over_limit=False)

    async def round(self, fields: Fields) -> dict[str, Any]:
        """Verify a draft and return the answer. Raises ApiError, and the error that ends the
        generation."""
        number = fields.integer("round", low=1, high=2**31 - 1)
        n = fields.integer("n", low=0, high=2**31 - 1)
        for name in ("round", "n", "hash"):
            fields.required(name)
        assert number is not None
        assert n is not None
        draft = draft_of(fields, self._session.n_vocab)
        async with self._lock:
            if number == self._round:
                return self._answer
            agreed = self._agreed(n, fields.text("hash"))
            if number != self._round + 1 or agreed != len(self._generated):
                raise DisagreementError(agreed, self._round)
            if self.over:
                raise ApiError(410, "The generation has ended.", code="gone")
            return await self._run(number, self._job(draft), over_limit=True)

    def prompt_field(self) -> dict[str, Any]:
        """Return the prompt's token ids if the client sent a text; else {}."""
        return {"prompt": self._opening.prompt} if self._opening.was_text else {}

    def end(self) -> None:
        """End the generation, with the tokens so far."""
        self.over = True
        if self._handle is not None:
            self._handle.cancel()

    def _agreed(self, n: int, digest: str) -> int:
        """Return how many generated tokens are known to be equal on both sides: n or 0."""
        if n == len(self._generated):
            own = self._digest
        elif n < len(self._generated):
            own = Digest([*self._opening.prompt, *self._generated[:n]])
        else:
            return 0
        return n if str(own) == digest else 0

    def _job(self, draft: _core.RequestDraft) -> list[QueuedRequest]:
        opening = self._opening
        return verification(self._session, opening.prompt, self._generated, draft, opening.options)

    async def _run(
        self, number: int, jobs: list[QueuedRequest], *, over_limit: bool
    ) -> dict[str, Any]:
        try:
            (self._handle,) = submitted(self._session, jobs, over_limit=over_limit)
            result = await self._handle
        except BaseException:
            self.end()
            raise
        if self.over:
            raise ClosedError("The generation was ended early.")
        self._count(result, number == 0)
        self._round = number
        self._answer = {"round": number, **self._read(result)}
        return self._answer

    def _read(self, result: Generation) -> dict[str, Any]:
        """Add the result of a round and return its answer."""
        stats = result.stats
        new = result.tokens[len(self._generated) :]
        self._generated = list(result.tokens)
        self._digest.add(new)
        self.over = result.finish_reason is not None
        fields: dict[str, Any] = {
            "n": len(result.tokens),
            "tokens": new,
            "drafted": stats.drafted,
            "accepted": stats.accepted,
            "seconds": stats.seconds.prefill + stats.seconds.verify,
            "done": self.over,
        }
        if new and len(result.logprobs) >= len(new):
            fields["logprobs"] = [logprobs_to_wire(one) for one in result.logprobs[: len(new)]]
        if self.over:
            fields["finish_reason"] = result.finish_reason
            fields["exact"] = stats.exact
            fields["reused"] = stats.reused_tokens
        return fields


class DisagreementError(ApiError):
    """Client and server do not have the same tokens or rounds."""

    def __init__(self, agreed: int, n_rounds: int) -> None:
        super().__init__(
            409, "Client and server have different tokens or rounds; open the generation again.",
            code="disagreement",
        )  # fmt: skip
        self._where = {"agreed": agreed, "round": n_rounds}

    @property
    def body(self) -> dict[str, Any]:
        body = super().body
        return {**body, "error": {**body["error"], **self._where}}
