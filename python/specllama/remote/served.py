"""A target served by `specllama serve`."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import Unpack

from specllama.formats.wire import MOST_BYTES
from specllama.remote.answer import Description, read_vocabulary
from specllama.remote.link import Link
from specllama.remote.target import Target, TokenizeOptions
from specllama.remote.text import Text
from specllama.remote.verification import Verification


class Served(Target):
    """See `Target`."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self.about = Description.read(link.get("/v1/verify"))
        self.table = read_vocabulary(link.get("/v1/verify/vocabulary"), self.about.n_vocab)

    def ping(self) -> None:
        self._link.get("/health")

    def tokenize(self, text: str, **options: Unpack[TokenizeOptions]) -> list[int]:
        reply = self._link.post("/tokenize", {"content": text, **options})
        return reply.tokens("tokens", self.about.n_vocab, most=MOST_BYTES)

    def detokenize(self, tokens: Sequence[int], *, special: bool) -> str:
        reply = self._link.post("/detokenize", {"tokens": tokens, "special": special})
        return reply.text("content", MOST_BYTES)

    def begin(self, text: Text) -> Verification:
        return Verification(self._link, self.about, text)
