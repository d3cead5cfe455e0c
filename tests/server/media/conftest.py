"""A server of a model that sees."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from session_options import EXACT, FIXED
from specllama import SpecSession

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for call in m.tool_calls %}{{ call.function.name }}{% endfor %}\n{% endfor %}<assistant>"
)


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest) -> Iterator[SpecSession]:
    os.environ["SEES"] = os.environ["HEARS"] = "1"
    with SpecSession(chat_template=TEMPLATE, **(EXACT | FIXED)) as opened:
        yield opened
    del os.environ["SEES"], os.environ["HEARS"]
