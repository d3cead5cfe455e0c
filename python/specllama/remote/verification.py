"""A text with drafts that a specllama server verifies."""

from __future__ import annotations

import re
import secrets
import threading
from typing import Any

from specllama._core import VerifyAnswer
from specllama.errors import RemoteError
from specllama.formats.wire import MOST_TOLD, Digest
from specllama.remote.answer import Asked, Description, read_answer
from specllama.remote.link import GoneError, Link
from specllama.remote.target import Branch
from specllama.remote.text import Text

_NAME = re.compile("[A-Za-z0-9_-]{1,64}")
_MOST_TRIES = 5
_MOST_OPENINGS = 8
"""Most openings of a text, in addition to one for each generated token."""


class Verification:
    """Sends requests to /v1/verify; see `Rounds`. Each round has a number, and a hash of all tokens
    shows whether both sides have the same text. If the server no longer has the text, or has other
    tokens of it, the text is opened again.

    Args:
        link: The link to the server.
        about: The description of the target.
        text: The text.
    """

    def __init__(self, link: Link, about: Description, text: Text) -> None:
        self._link = link
        self._about = about
        self._text = text
        self._name = secrets.token_hex(12)
        self._id = ""  # "": not open
        self._lock = threading.Lock()  # after an interrupt, the previous round may still run
        self._n_rounds = 0
        self._n_openings = 0
        self._digest = Digest()
        self._n_digested = 0

    def round(self, generated: list[int], draft: list[int], branches: list[Branch]) -> VerifyAnswer:
        """See `Rounds.round`."""
        with self._lock:
            for n_left in reversed(range(_MOST_TRIES)):
                try:
                    if self._id:
                        return self._verify(generated, draft, branches)
                    return self._open(generated)
                except GoneError:
                    self._forget()
                    if n_left == 0:
                        raise
        raise AssertionError

    def close(self) -> None:
        """Let the server delete the text, which frees its slot at once."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        name, self._id = self._id, ""
        if name:
            self._link.delete(f"/v1/verify/{name}")

    def _open(self, generated: list[int]) -> VerifyAnswer:
        self._n_openings += 1
        if self._n_openings > _MOST_OPENINGS + len(generated):
            raise RemoteError(
                f"{self._link.url} has lost the generation {self._n_openings - 1} times after "
                f"only {len(generated)} tokens."
            )
        # If the answer is lost and this is repeated, the same name replaces the first opening.
        reply = self._link.post("/v1/verify", {
            "name": self._name,
            "vocabulary": self._about.vocabulary,
            "prompt": self._text.prompt,
            "generated": generated,
            "options": self._text.options(),
        })  # fmt: skip
        name = reply.text("id", 64)
        if not _NAME.fullmatch(name):
            reply.refuse("id", name, "the name of a generation")
        self._id = name
        self._n_rounds = 0
        self._digest = Digest(self._text.prompt)
        self._n_digested = 0
        return self._read(reply, generated, None)

    def _verify(
        self, generated: list[int], draft: list[int], branches: list[Branch]
    ) -> VerifyAnswer:
        self._digest.add(generated[self._n_digested :])
        self._n_digested = len(generated)
        body: dict[str, Any] = {
            "round": self._n_rounds + 1,
            "n": len(generated),
            "hash": str(self._digest),
            "draft": draft,
        }
        n_sent = len(draft)
        aside = []
        for depth, tokens in branches:
            if n_sent + len(tokens) > MOST_TOLD:
                break
            n_sent += len(tokens)
            aside.append([depth, *tokens])
        if aside:
            body["branches"] = aside
        reply = self._link.post(f"/v1/verify/{self._id}", body)
        self._n_rounds += 1
        return self._read(reply, generated, n_sent)

    def _read(self, reply: Any, generated: list[int], n_drafted: int | None) -> VerifyAnswer:
        asked = Asked(
            n_vocab=self._about.n_vocab,
            n_left=self._text.max_tokens - len(generated),
            n_logprobs=self._text.sampling.logprobs,
            n_drafted=n_drafted,
        )
        answer = read_answer(reply, asked)
        if reply.flag("done"):  # the server has already freed its slot
            self._id = ""
        return answer
