"""Log-probabilities in the formats of the APIs."""

from __future__ import annotations

import codecs
from typing import Any

from specllama.model.loaded_model import LoadedModel

MOST_LOGPROBS = 20
"""Maximum number of top log-probabilities for each position."""

_IMPOSSIBLE = -9999.0


def finite(logprob: float) -> float:
    """Return a log-probability that JSON can hold: -9999 is probability 0, as in the OpenAI API."""
    return max(logprob, _IMPOSSIBLE)


def token_name(piece: bytes) -> str:
    """Return the text of a token, given its bytes. Bytes that are not whole characters are written
    as in the OpenAI API, such as `bytes:\\xf0\\x9f`."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)


def described_token(model: LoadedModel, token: int, logprob: float) -> dict[str, Any]:
    """Return a token in the format of chat completions."""
    piece = model.token_bytes(token)
    return {"token": token_name(piece), "logprob": finite(logprob), "bytes": list(piece)}


class TextOffsets:
    """Counts the characters of a text before each of its tokens."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._n = 0

    def push(self, piece: bytes) -> int:
        """Add the bytes of the next token; return the index of the character that they begin or
        continue."""
        before = self._n
        self._n += len(self._decoder.decode(piece))
        return before
