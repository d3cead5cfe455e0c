"""The part of SGLang's /generate that is needed here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specllama.errors import RemoteError
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
    """Asks /generate. Both methods raise what `Link.post` raises, and RemoteError if the answer is
    not one of SGLang's.

    Args:
        link: The link to the server.
    """

    def __init__(self, link: Link) -> None:
        self._link = link

    def rows(self, tokens: Sequence[int], draft: Sequence[int], n_top: int) -> Told:
        """Return a row for each token of a draft, from which it is to be chosen, and one after it.

        Args:
            tokens: The text, one token at least.
            draft: Tokens that may follow the text.
            n_top: Number of tokens in each row.
        """
        meta = self._ask({
            "input_ids": [*tokens, *draft],
            "top_logprobs_num": n_top,
            # The text's last token is the first that is computed. Its own entry is None, and is
            # dropped; the draft's follow. Without a draft some versions have no entries at all.
            "logprob_start_len": len(tokens) - 1,
        })  # fmt: skip
        try:
            told = [*(meta.get("input_top_logprobs") or [])[1:], *meta["output_top_logprobs"]]
            rows = [[(int(token), float(value)) for value, token, *_ in row] for row in told]
            seconds = float(meta.get("e2e_latency") or 0)
            n_cached = int(meta.get("cached_tokens") or 0)
        except (KeyError, TypeError, ValueError):
            raise self._strange("log-probabilities are missing") from None
        if len(rows) != len(draft) + 1 or not all(rows):
            raise self._strange(f"it tells of {len(rows)} positions, not {len(draft) + 1}")
        if any(math.isnan(value) for row in rows for _, value in row):
            raise self._strange("a log-probability is no number")
        return Told(rows, seconds if math.isfinite(seconds) else 0.0, n_cached)

    def texts(self, tokens: Sequence[int]) -> list[str | None]:
        """Return the text of each token; None if the server does not tell it."""
        meta = self._ask({
            "input_ids": list(tokens),
            "logprob_start_len": 0,
            "return_text_in_logprobs": True,
        })  # fmt: skip
        try:
            told = {int(token): text for _, token, text in meta["input_token_logprobs"]}
        except (KeyError, TypeError, ValueError):
            raise self._strange("log-probabilities are missing") from None
        return [told.get(token) for token in tokens]

    def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        fields = {"sampling_params": _SAMPLING, "return_logprob": True, "stream": False}
        try:
            meta = self._link.post("/generate", {**body, **fields}).get("meta_info")
        except GoneError as error:  # SGLang keeps nothing that could be gone
            raise RemoteError(f"{self._link.url} failed: {error}") from None
        if not isinstance(meta, dict):
            raise self._strange("meta_info is missing")
        reason = meta.get("finish_reason")
        if isinstance(reason, dict) and reason.get("type") == "abort":
            raise RemoteError(f"{self._link.url} gave up: {reason.get('message', 'no reason')}")
        return meta

    def _strange(self, what: str) -> RemoteError:
        return RemoteError(f"{self._link.url} does not answer as SGLang does: {what}.")
