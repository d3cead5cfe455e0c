"""Requests to SGLang's /generate."""

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
"""The likeliest tokens at a position with their log-probabilities, the likeliest first."""

# Every parameter that changes the log-probabilities is sent, because a server may have other
# defaults (--preferred-sampling-params).
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
    """SGLang's answer for some positions.

    Attributes:
        rows: A row for each position.
        seconds: Time of the request on the server; 0 if unknown.
        n_cached: Leading tokens that were in the server's KV memory.
    """

    rows: list[Row]
    seconds: float
    n_cached: int


class Generate:
    """Sends requests to /generate. The methods raise the errors of `Link.post`, and RemoteError if
    the answer is not one of SGLang.

    SGLang does not check token ids: an id outside its vocabulary ends the server. So call `limit`
    first, and send only ids below its result.

    Args:
        link: The link to the server.
    """

    def __init__(self, link: Link) -> None:
        self._link = link

    def limit(self, n_vocab: int) -> int:
        """Return how many of the token ids 0 to n_vocab - 1 the server has."""
        try:  # unlike input_ids, these are checked
            self._ask({"input_ids": [0], "token_ids_logprob": [n_vocab - 1]})
        except ArgumentError as error:
            known = _RANGE.search(str(error))
            if known is None or not 0 < int(known[1]) < n_vocab:
                raise
            return int(known[1])
        return n_vocab

    def rows(self, tokens: Sequence[int], draft: Sequence[int], n_top: int) -> Told:
        """Return the rows for the choice of each token of a draft and of the token after it.

        Args:
            tokens: The text, at least one token.
            draft: Tokens that may follow the text.
            n_top: Number of tokens in each row; not more than the server's vocabulary.
        """
        meta = self._ask({
            "input_ids": [*tokens, *draft],
            "top_logprobs_num": n_top,
            # The text's last token is the first computed one. Its own entry is None and dropped;
            # those of the draft follow. Without a draft, some versions send no entries.
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
        """Return the text of each token; None if the server does not send it."""
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
        except GoneError as error:  # SGLang has no generations that could be lost
            raise RemoteError(f"{self._link.url} failed: {error}") from None
        reason = meta.raw("finish_reason")
        if isinstance(reason, dict) and reason.get("type") == "abort":
            said = Fields(self._link.url, reason).message() or "no reason"
            raise RemoteError(f"{self._link.url} aborted the request: {said}")
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
