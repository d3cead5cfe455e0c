"""A target served by `specllama serve`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from specllama import _core
from specllama.errors import RemoteError
from specllama.remote.ahead import Ahead
from specllama.remote.link import Link
from specllama.remote.lockstep import Lockstep
from specllama.remote.party import Party
from specllama.remote.sockets import Sockets
from specllama.remote.stream import Runner
from specllama.remote.target import Mode
from specllama.remote.verification import Verification


class Served:
    """See `Target`.

    Args:
        link: The link to the server.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._sockets = Sockets(link)
        self.about = _About(link)
        self.url = link.url

    def ping(self) -> None:
        self._link.get("/health")

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        body = {"content": text, "add_special": add_special, "parse_special": parse_special}
        tokens = self._link.post("/tokenize", body).get("tokens")
        if not isinstance(tokens, list) or not all(
            type(one) is int and 0 <= one < 2**31 for one in tokens
        ):
            raise RemoteError(f"{self.url} gave no tokens; is it a specllama server?")
        return tokens

    def detokenize(self, tokens: Sequence[int], *, special: bool) -> str:
        told = self._link.post("/detokenize", {"tokens": tokens, "special": special})
        text = told.get("content")
        if not isinstance(text, str):
            raise RemoteError(f"{self.url} gave no text; is it a specllama server?")
        return text

    def check(self, options: _core.GenerateOptions) -> None:
        pass  # the server itself refuses what it does not have

    def runner(self, party: Party, mode: Mode, timeout: float) -> Runner:
        if mode == "ahead":
            return Ahead(party, self._link, self._sockets, timeout)
        return Lockstep(party, Verification(self._link, party.text))

    def hang_up(self) -> None:
        self._link.hang_up()

    def close(self) -> None:
        self._sockets.close()
        self._link.close()


class _About:
    """A server's description of its target. Raises RemoteError if a field is missing or wrong."""

    def __init__(self, link: Link) -> None:
        self._url = link.url
        self._told = link.get("/v1/verify")
        # A server that does not know branches does not mention them.
        self._told.setdefault("guesses", 1)
        self._told.setdefault("most_nodes", self._told.get("longest_draft"))
        try:
            for name in (
                "n_ctx", "n_vocab", "bos", "eos", "n_threads", "longest_draft", "guesses",
                "most_nodes",
            ):  # fmt: skip
                int(self[name])
            int(self["vocabulary"], 16)
            if len(self["fim"]) != 5 or not all(one >= 0 for one in self["decode_seconds"]):
                raise ValueError
            self["chat_template"], self["description"], self["kernels"], self["drafts"]
        except (TypeError, ValueError, OverflowError):
            self._refuse()

    def __getitem__(self, name: str) -> Any:
        if name not in self._told:
            self._refuse()
        return self._told[name]

    def _refuse(self) -> NoReturn:
        raise RemoteError(f"{self._url} does not verify drafts; is it a specllama server?")
