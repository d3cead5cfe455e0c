"""Drafters that fail in every round."""

from __future__ import annotations

import logging

import pytest
from session_options import Open
from specllama import Drafter


@pytest.mark.parametrize("n_seq", [1, 2])
def test_a_drafter_error_in_every_round_is_logged_once(
    open_session: Open, caplog: pytest.LogCaptureFixture, n_seq: int
) -> None:
    class Failing(Drafter):
        def propose(self, *_: object) -> list[int]:
            raise RuntimeError(f"boom for {n_seq}")

    with caplog.at_level(logging.WARNING):
        for drafter in (Failing(), Failing()):
            session = open_session(draft=drafter, n_seq=n_seq)
            for _ in range(2):
                session.generate("import os", max_tokens=6)
    (said,) = caplog.messages
    assert said.startswith("The drafter failed in every round, so nothing was drafted: ")
    assert f"boom for {n_seq}" in said


def test_occasional_drafter_errors_are_not_logged(
    open_session: Open, caplog: pytest.LogCaptureFixture
) -> None:
    class Sometimes(Drafter):
        n = 0

        def propose(self, *_: object) -> list[int]:
            self.n += 1
            if self.n % 2:
                raise RuntimeError("boom")
            return [1]

    with caplog.at_level(logging.WARNING):
        open_session(draft=Sometimes()).generate("import os", max_tokens=12)
    assert caplog.messages == []
