"""Sessions with one slot and with several; each request gets the tokens that it gets alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from session_options import EXACT_HERE, Open


@pytest.fixture(params=[1, 3], ids=lambda n: f"n_seq={n}")
def n_seq(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def open_session(open_session: Open, n_seq: int) -> Open:
    return partial(open_session, n_seq=n_seq, exact=EXACT_HERE)
