"""SGLang's /generate, as far as it is needed here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specllama.errors import RemoteError
from specllama.remote.link import GoneError, Link

Row = list[tuple[int, float]]
"""The likeliest tokens at a position and the logarithms of their probabilities, likeliest first."""

# All that bends the logarithms and that a server may have preferences for
# (--preferred-sampling-params) is given.
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
    """What SGLang says of some positions.

    Attributes:
        rows: One for each.
        seconds: What it took there; 0 where that is not told.
        n_cached: Leading tokens that its memory held.
    """

    rows: list[Row]
    seconds: float
    n_cached: int


class Generate:
    """Asks /generate. Both methods raise what `Link.post` does, and RemoteError for an answer that
    is none of SGLang's.

    Args:
        link: To the server.
    """

    def __init__(self, link: Link) -> None:
        self._link = link

    def rows(self, tokens: Sequence[int], draft: Sequence[int], n_top: int) -> Told:
        """Return from what each token of a draft was to be chosen, and what follows it.

        Args:
            tokens: The text, one token at least.
            draft: What may follow it.
            n_top: How many tokens of a row are told.
        """
        meta = self._ask({
            "input_ids": [*tokens, *draft],
            "top_logprobs_num": n_top,
            # The last token of the text is the first that is computed: its own place, of which
            # nothing is told, is before the draft's. With no draft some versions tell of no place.
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
        """Return the text of each token; None where it is not told."""
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
        except GoneError as error:  # nothing is held there that could be gone
            raise RemoteError(f"{self._link.url} failed: {error}") from None
        if not isinstance(meta, dict):
            raise self._strange("meta_info is missing")
        reason = meta.get("finish_reason")
        if isinstance(reason, dict) and reason.get("type") == "abort":
            raise RemoteError(f"{self._link.url} gave up: {reason.get('message', 'no reason')}")
        return meta

    def _strange(self, what: str) -> RemoteError:
        return RemoteError(f"{self._link.url} does not answer as SGLang does: {what}.")
