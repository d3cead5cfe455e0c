"""A target served by `specllama serve`."""

from __future__ import annotations

from collections.abc import Sequence

from specllama.formats.wire import MOST_BYTES
from specllama.remote.answer import Description, read_vocabulary
from specllama.remote.link import Link
from specllama.remote.text import Text
from specllama.remote.verification import Verification


class Served:
    """See `Target`.

    Args:
        link: The link to the server.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self.url = link.url
        self.about = Description.read(link.get("/v1/verify"))
        self.table = read_vocabulary(link.get("/v1/verify/vocabulary"), self.about.n_vocab)

    def ping(self) -> None:
        self._link.get("/health")

    def tokenize(
        self,
        text: str,
        *,
        add_special: bool,
        parse_special: bool,
        plain: Sequence[tuple[int, int]],
    ) -> list[int]:
        body = {
            "content": text, "add_special": add_special, "parse_special": parse_special,
            "plain": plain,
        }  # fmt: skip
        reply = self._link.post("/tokenize", body)
        return reply.tokens("tokens", self.about.n_vocab, most=MOST_BYTES)

    def detokenize(self, tokens: Sequence[int], *, special: bool) -> str:
        reply = self._link.post("/detokenize", {"tokens": tokens, "special": special})
        return reply.text("content", MOST_BYTES)

    def begin(self, text: Text) -> Verification:
        return Verification(self._link, self.about, text)

    def hang_up(self) -> None:
        self._link.hang_up()

    def close(self) -> None:
        self._link.close()
