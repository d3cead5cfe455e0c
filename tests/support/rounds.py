"""What requests for which somebody outside drafts tell."""

from __future__ import annotations

import asyncio

from specllama import Handle
from specllama.requests.round import Round


def rounds_of(handle: Handle) -> list[Round]:
    """Return the rounds there are, of which there will be one at least."""
    return asyncio.run(asyncio.wait_for(handle.next_rounds(), 60))
