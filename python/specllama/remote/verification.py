"""The questions about a text to a specllama server that verifies its drafts."""

from __future__ import annotations

import re
import secrets
from typing import Any

from specllama.formats.wire import Digest
from specllama.remote.answer import Answer
from specllama.remote.draft import Draft
from specllama.remote.link import Link
from specllama.remote.text import Text

_NAME = re.compile("[A-Za-z0-9_-]{1,64}")


class Verification:
    """Asks /v1/verify; see `Exchange`. Each round has its number, and the hash of all tokens shows
    whether both sides have the same text.

    Args:
        link: The link to the server.
        text: The text.
    """

    def __init__(self, link: Link, text: Text) -> None:
        self._link = link
        self._text = text
        self._name = secrets.token_hex(12)
        self._id = ""
        self._n_rounds = 0
        self._digest = Digest()
        self._n_digested = 0

    def open(self) -> Answer:
        """Open the generation, or open it again after the tokens so far."""
        # If this is repeated as the answer was lost, the name makes it replace the first opening.
        told = self._link.post("/v1/verify", {"name": self._name, **self._text.opening()})
        name = told.text("id", 64)
        if not _NAME.fullmatch(name):
            told.refuse("id", name, "the name of a generation")
        self._id = name
        self._n_rounds = 0
        self._digest = Digest()
        self._n_digested = 0
        return Answer.read(told, self._text.asked(None, opens=True))

    def verify(self, draft: Draft) -> Answer:
        """Have a draft verified."""
        tokens = [*self._text.prompt, *self._text.generated]
        self._digest.add(tokens[self._n_digested :])
        self._n_digested = len(tokens)
        body: dict[str, Any] = {
            "round": self._n_rounds + 1,
            "n": len(self._text.generated),
            "hash": str(self._digest),
            **draft.told()[0],
        }
        told = self._link.post(f"/v1/verify/{self._id}", body)
        self._n_rounds += 1
        return Answer.read(told, self._text.asked(draft.n_told))

    def close(self) -> None:
        """Have the server forget the generation."""
        if self._id:
            self._link.delete(f"/v1/verify/{self._id}")
        self._id = ""
