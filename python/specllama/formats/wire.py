"""Messages between a target and a remote drafter (verify-protocol.md)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from typing import Any

from specllama._core import TokenLogprobs

MOST_DRAFTED = 64
"""Maximum number of tokens that are verified at once."""
MOST_TOLD = 256
"""Maximum number of tokens of a draft that are sent, including those of its branches."""
MOST_BYTES = 16 << 20
"""Maximum number of bytes of an answer that are read. The longest answer of a server, the token ids
of a text that fills a context, has about a tenth of these."""


class Digest:
    """A hash of token ids that can be extended: 8 bytes of BLAKE2b over their 32 bits each, lowest
    byte first.

    Args:
        tokens: The first token ids.
    """

    def __init__(self, tokens: Iterable[int] = ()) -> None:
        self._hash = hashlib.blake2b(digest_size=8)
        self.add(tokens)

    def add(self, tokens: Iterable[int]) -> None:
        """Add the token ids that follow."""
        new = [*tokens]
        self._hash.update(struct.pack(f"<{len(new)}i", *new))

    def __str__(self) -> str:
        return self._hash.hexdigest()


def logprobs_to_wire(one: TokenLogprobs) -> list[Any]:
    """Return log-probabilities as JSON: a token, its log-probability, and pairs for the likeliest
    tokens."""
    return [one.token, one.logprob, one.top]
