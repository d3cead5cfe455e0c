"""A client of /v1/verify that uses nothing of the package's client."""

from __future__ import annotations

from typing import Any

import httpx
from prompts import PROMPTS
from serving import Server
from specllama.formats.wire import Digest

MODULE = PROMPTS["module"]
N = 12
"""Default number of tokens of a generation."""


class Client:
    """A generation as its client sees it."""

    def __init__(self, server: Server, **body: Any) -> None:
        self.server = server
        self.opened = server.post("/v1/verify", {"options": {"max_tokens": N}, **body}).json()
        self.id: str = self.opened["id"]
        self.prompt: list[int] = self.opened.get("prompt", body.get("prompt"))
        self.tokens: list[int] = [*body.get("generated", []), *self.opened["tokens"]]
        self.n_rounds = 0

    def body(self, draft: list[int], *branches: list[int]) -> dict[str, Any]:
        digest = str(Digest([*self.prompt, *self.tokens]))
        n = len(self.tokens)
        body = {"round": self.n_rounds + 1, "n": n, "hash": digest, "draft": draft}
        return body | ({"branches": [*branches]} if branches else {})

    def ask(self, body: object) -> httpx.Response:
        return self.server.post(f"/v1/verify/{self.id}", body)

    def round(self, draft: list[int], *branches: list[int]) -> dict[str, Any]:
        answer: dict[str, Any] = self.ask(self.body(draft, *branches)).json()
        self.n_rounds += 1
        self.tokens += answer["tokens"]
        return answer

    def end(self) -> None:
        httpx.delete(f"{self.server.url}/v1/verify/{self.id}", timeout=60)
