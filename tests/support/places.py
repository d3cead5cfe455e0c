"""Sessions with one place for requests, and with several: each request gets what it would get
alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from conftest import EXACT_HERE
from specllama import SpecSession

Open = Callable[..., SpecSession]


@pytest.fixture(params=[1, 3], ids=lambda n: f"n_seq={n}")
def n_seq(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def open_session(open_session: Open, n_seq: int) -> Open:
    return partial(open_session, n_seq=n_seq, exact=EXACT_HERE)
