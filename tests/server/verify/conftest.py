"""A session that verifies, and its tokens without drafts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from session_options import EXACT, EXACT_HERE, FIXED
from specllama import SpecSession
from verifying import MODULE, N


@pytest.fixture(scope="module")
def session() -> Iterator[SpecSession]:
    """The bundled model with two slots."""
    options: dict[str, Any] = {"exact": EXACT_HERE, "n_seq": 2, "verifies": True}
    with SpecSession(None, "ngram", **(EXACT | FIXED | options)) as one:
        yield one


@pytest.fixture(scope="module")
def expected(session: SpecSession) -> list[int]:
    """The N tokens after MODULE."""
    return session.generate(MODULE, max_tokens=N).tokens
