"""The part of SGLang's /generate that is needed here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specllama.errors import ArgumentError, RemoteError
from specllama.remote.answer import as_logprob
from specllama.remote.fields import Fields
from specllama.remote.link import GoneError, Link

Row = list[tuple[int, float]]
"""The likeliest tokens at a position and the logarithms of their probabilities, likeliest first."""

# Every parameter that changes the log-probabilities is sent: for those left out, a server may have
# defaults of its own (--preferred-sampling-params).
_SAMPLING = {
    "max_new_tokens": 1,
    "min_new_tokens": 0,
    "temperature": 0,
    "repetition_penalty": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
}
_RANGE = re.compile(r"valid range is \[0, (\d{1,9})\)")
_MOST_ID = 2**31 - 1
_LONGEST_TEXT = 1 << 12
"""In characters, of a token."""


@dataclass(frozen=True)
class Told:
    """SGLang's answer about some positions.

    Attributes:
        rows: One row for each position.
        seconds: Seconds that the request took at the server; 0 if it does not say.
        n_cached: Leading tokens that the server's KV memory held.
    """

    rows: list[Row]
    seconds: float
    n_cached: int


class Generate:
    """Asks /generate. The methods raise what `Link.post` raises, and RemoteError if the answer is
    not one of SGLang's.

    SGLang does not check the ids that it is sent: one beyond its vocabulary ends the server. So
    `limit` comes first, and what it returns bounds the ids of all further requests.

    Args:
        link: The link to the server.
    """

    def __init__(self, link: Link) -> None:
        self._link = link

    def limit(self, n_vocab: int) -> int:
        """Return how many of the token ids 0 to n_vocab - 1 the server knows."""
        try:  # unlike input_ids, these are checked
            self._ask({"input_ids": [0], "token_ids_logprob": [n_vocab - 1]})
        except ArgumentError as error:
            known = _RANGE.search(str(error))
            if known is None or not 0 < int(known[1]) < n_vocab:
                raise
            return int(known[1])
        return n_vocab

    def rows(self, tokens: Sequence[int], draft: Sequence[int], n_top: int) -> Told:
        """Return a row for each token of a draft, from which it is to be chosen, and one after it.

        Args:
            tokens: The text, one token at least.
            draft: Tokens that may follow the text.
            n_top: Number of tokens in each row; not more than the server knows.
        """
        meta = self._ask({
            "input_ids": [*tokens, *draft],
            "top_logprobs_num": n_top,
            # The text's last token is the first that is computed. Its own entry is None, and is
            # dropped; the draft's follow. Without a draft some versions have no entries at all.
            "logprob_start_len": len(tokens) - 1,
        })  # fmt: skip
        n = len(draft)
        name = "input_top_logprobs"
        listed = meta.items(name, most=n + 1)[1:] if name in meta else []
        if len(listed) != n:
            meta.refuse(name, meta.raw(name), f"the rows of {n + 1} tokens")
        rows = [_row(meta, name, row, n_top) for row in listed]
        name = "output_top_logprobs"
        rows += [_row(meta, name, row, n_top) for row in meta.items(name, most=1)]
        if len(rows) != n + 1:
            meta.refuse(name, meta.raw(name), "a list of one row")
        seconds = meta.number("e2e_latency", 0, 86400, 0) if "e2e_latency" in meta else 0.0
        n_cached = meta.integer("cached_tokens", 0, _MOST_ID) if "cached_tokens" in meta else 0
        return Told(rows, seconds, n_cached)

    def texts(self, tokens: Sequence[int]) -> list[str | None]:
        """Return the text of each token; None if the server does not tell it."""
        meta = self._ask({
            "input_ids": list(tokens),
            "logprob_start_len": 0,
            "return_text_in_logprobs": True,
        })  # fmt: skip
        name = "input_token_logprobs"
        texts: dict[int, str] = {}
        for one in meta.items(name, most=len(tokens)):
            if not isinstance(one, list) or len(one) != 3:
                meta.refuse(name, one, "a log-probability, a token and its text")
            if one[2] is not None:
                token = meta.as_integer(name, one[1], 0, _MOST_ID)
                texts[token] = meta.as_text(name, one[2], _LONGEST_TEXT)
        return [texts.get(token) for token in tokens]

    def _ask(self, body: dict[str, Any]) -> Fields:
        fields = {"sampling_params": _SAMPLING, "return_logprob": True, "stream": False}
        try:
            meta = self._link.post("/generate", {**body, **fields}).object("meta_info")
        except GoneError as error:  # SGLang keeps nothing that could be gone
            raise RemoteError(f"{self._link.url} failed: {error}") from None
        reason = meta.raw("finish_reason")
        if isinstance(reason, dict) and reason.get("type") == "abort":
            said = Fields(self._link.url, reason).message() or "no reason"
            raise RemoteError(f"{self._link.url} gave up: {said}")
        return meta


def _row(meta: Fields, name: str, row: Any, n_top: int) -> Row:
    if not isinstance(row, list) or not 1 <= len(row) <= n_top:
        meta.refuse(name, row, f"from 1 to {n_top} tokens for each position")
    for one in row:
        if not isinstance(one, list) or not 2 <= len(one) <= 3:
            meta.refuse(name, one, "a log-probability and a token")
    return [
        (meta.as_integer(name, one[1], 0, _MOST_ID), as_logprob(meta, name, one[0])) for one in row
    ]
