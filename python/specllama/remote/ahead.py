"""Drafts that meet a target which does not wait for them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from specllama._core import Source
from specllama._core.plan import Evidence
from specllama.errors import RemoteError
from specllama.formats.wire import MOST_DRAFTED
from specllama.remote.answer import Answer
from specllama.remote.draft import Draft
from specllama.remote.fields import Fields
from specllama.remote.link import GoneError, Link, error_of
from specllama.remote.party import Party
from specllama.remote.proposing import Drafted, add_guess
from specllama.remote.sockets import Sockets, close

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

_MOST_TRIES = 5
_SURE_MATCH = 8
"""Length of a match from which on a copy is drafted without asking the draft model."""
_SENT_ONE_BY_ONE = 4
"""A draft model's first tokens, this many, are sent one by one, later ones in groups of as many."""


class Ahead:
    """Runs a generation at a server that does not wait for drafts.

    The server sends its rounds as it decodes them. Meanwhile this side drafts from the last token
    that it has heard, over the tokens that are still on their way. A draft helps if it reaches the
    server before the text has gone past its end. So a generation is about as fast as a text that
    the server streams, and faster where drafts arrive in time.

    Args:
        party: The request: its text and its drafters.
        link: The link to the server.
        sockets: Keeps WebSocket connections to the server.
        timeout: Most seconds without a word from the server, or without it taking one.
    """

    def __init__(self, party: Party, link: Link, sockets: Sockets, timeout: float) -> None:
        self._party = party
        self._link = link
        self._sockets = sockets
        self._timeout = timeout
        self._socket: ClientConnection | None = None
        self._began = 0.0
        self._again = False  # whether the next message opens a generation
        self._draft = Draft()  # follows the tokens heard so far
        self._n_sent = -1  # tokens of the draft that the server has; -1: it has another draft
        self._model: Iterator[Drafted | None] | None = None

    def round(self) -> None:
        """Go on by at least one round. A connection that broke off is opened again. Raises what
        `Link.post` does."""
        for n_left in reversed(range(_MOST_TRIES)):
            try:
                self._hear()
                break
            except GoneError:
                self._lose()
                if n_left == 0:
                    raise

    def close(self) -> None:
        """End it; the server hears of it by the end of the connection."""
        self._lose()

    def _hear(self) -> None:
        party = self._party
        if self._socket is None:
            self._socket = self._sockets.take()
            self._began = time.monotonic()
            self._again = True
            self._send({**party.text.opening(), **party.reference})
        told = self._next()
        now = time.monotonic()
        answer = Answer.read(told, party.text.asked(None, opens=self._again))
        if self._again:
            self._take(party.hear_first(answer, now - self._began))
            self._again = False
        else:
            self._take(party.overhear(answer, now - self._began))
        self._began = now
        if party.text.done:
            self._keep()

    def _next(self) -> Fields:
        """Return the next message, drafting until it comes. Raises GoneError, RemoteError, or what
        the server reports."""
        message = self._receive(0)
        while message is None and not self._again and self._go_on():
            message = self._receive(0)
        if message is None:
            message = self._receive(self._timeout)
        if message is None:
            raise RemoteError(
                f"{self._link.url} sent no round for {self._timeout:g} s (target_timeout)."
            )
        told = self._link.parsed(message)
        if "error" in told:
            raise error_of(self._link.url, told.integer("status", 100, 999, 500), told)
        return told

    def _receive(self, seconds: float) -> str | bytes | None:
        """Return a message, or None if none comes within `seconds`. Raises GoneError if the
        connection broke off."""
        from websockets.exceptions import ConnectionClosed

        assert self._socket is not None
        try:
            return self._socket.recv(timeout=seconds)
        except TimeoutError:
            return None
        except ConnectionClosed as error:
            raise GoneError(f"The connection broke off: {error}.") from None

    def _send(self, body: dict[str, Any]) -> None:
        from websockets.exceptions import ConnectionClosed

        assert self._socket is not None
        began = time.monotonic()
        try:
            self._socket.send(json.dumps(body, separators=(",", ":")))
        except ConnectionClosed:
            if time.monotonic() - began >= self._timeout:
                raise RemoteError(
                    f"{self._link.url} has taken nothing for {self._timeout:g} s (target_timeout)."
                ) from None
            # Otherwise the generation may have ended, and its last messages are still to be read.

    def _take(self, tokens: list[int]) -> None:
        """Keep what is left of the draft behind these tokens of the target, maybe nothing."""
        draft, party = self._draft, self._party
        n = draft.agreed(tokens)
        if draft.tokens:
            party.prospects.drafted(len(draft.tokens), draft.foreseen(tokens), len(tokens))
        self._draft = draft.after(tokens)
        if n == len(tokens) and n < len(draft.tokens):
            self._n_sent = max(self._n_sent - n, 0)
            return
        if draft.tokens and n < len(tokens) and party.proposer is not None:
            party.proposer.judge(draft, n, tokens[n])
        self._forget_model()
        # If the text took a branch of the draft, the server has what follows there, too.
        self._n_sent = len(self._draft.tokens) or -1

    def _go_on(self) -> bool:
        """Draft some more, and send it; return whether there may be more to draft."""
        party = self._party
        most = party.spec_length or MOST_DRAFTED
        room = min(most, party.text.n_left - 1) - len(self._draft.tokens)
        if party.text.done or room < 1:
            return False
        asks_model = party.draft_model is not None and party.usefulness.wanted
        began = time.monotonic()
        if self._n_sent < 0 and party.proposer is not None:
            self._draft = party.proposer.draft(room)
            if _is_sure(self._draft) or not asks_model:
                self._n_sent = 0
                self._tell()
                party.tally.draft_seconds += time.monotonic() - began
                return asks_model
            self._draft = Draft()
        self._n_sent = max(self._n_sent, 0)
        if not asks_model:
            return False
        if self._model is None:
            self._model = party.model_tokens(self._draft.tokens, room)
        drafted = next(self._model, ())
        party.tally.draft_seconds += time.monotonic() - began
        if drafted is None:  # the model still reads the text; messages that came meanwhile go first
            return True
        if not drafted:
            self._tell()
            return False
        add_guess(self._draft, drafted)
        party.usefulness.offer()
        n_new = len(self._draft.tokens) - self._n_sent
        if self._n_sent < _SENT_ONE_BY_ONE or n_new >= _SENT_ONE_BY_ONE:
            self._tell()
        return True

    def _tell(self) -> None:
        draft = self._draft
        if len(draft.tokens) <= self._n_sent:
            return
        body, evidence = draft.told()
        self._send({
            "n_before": self._party.text.n_tokens,
            **body,
            "confidence": [round(_confidence(one), 3) for one in evidence],
        })  # fmt: skip
        self._n_sent = len(draft.tokens)

    def _forget_model(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            model.close()  # type: ignore[attr-defined]

    def _lose(self) -> None:
        """Drop the connection and the draft."""
        if (socket := self._leave()) is not None:
            close(socket)

    def _keep(self) -> None:
        """Keep the connection for the next generation."""
        if (socket := self._leave()) is not None:
            self._sockets.give(socket)

    def _leave(self) -> ClientConnection | None:
        self._forget_model()
        self._draft = Draft()
        self._n_sent = -1
        socket, self._socket = self._socket, None
        return socket


def _is_sure(draft: Draft) -> bool:
    return bool(draft.evidence) and draft.evidence[0].length >= _SURE_MATCH


def _confidence(evidence: Evidence) -> float:
    """Return roughly the chance that a token is right if those before it are."""
    if evidence.source in (Source.match, Source.corpus):
        return evidence.length / (evidence.length + 1.5)  # 0.4 for one token, 0.91 for 16
    return evidence.confidence
