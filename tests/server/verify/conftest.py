"""A server that verifies, and what it generates without drafts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from session_options import EXACT, EXACT_HERE, FIXED
from specllama import SpecSession
from verifying import MODULE, N


@pytest.fixture(scope="module")
def session() -> Iterator[SpecSession]:
    """The bundled model with two places."""
    options: dict[str, Any] = {"exact": EXACT_HERE, "n_seq": 2, "verifies": True}
    with SpecSession(None, "ngram", **(EXACT | FIXED | options)) as one:
        yield one


@pytest.fixture(scope="module")
def expected(session: SpecSession) -> list[int]:
    """N tokens after the module."""
    return session.generate(MODULE, max_tokens=N).tokens
