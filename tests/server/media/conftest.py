"""A session with a model that sees images."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from seeing import open_seeing
from specllama import SpecSession
from vision_models import WRITERS

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for call in m.tool_calls %}{{ call.function.name }}{% endfor %}\n{% endfor %}<assistant>"
)


@pytest.fixture(scope="module", params=["gemma3", "qwen"])
def session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SpecSession]:
    """Models with a fixed or any image size, whose rows have separate or shared positions."""
    model = WRITERS[request.param](tmp_path_factory.mktemp("models"))
    with open_seeing(model, "ngram", chat_template=TEMPLATE) as opened:
        yield opened
