"""A server for every format of tool calls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from serving import Server, serve_scripted
from tool_models import SCRIPTS


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    """A server for every format."""
    models = {
        name: {"pieces": one.pieces, "control": one.control, "chat_template": one.template}
        for name, one in SCRIPTS.items()
    }
    with serve_scripted(tmp_path_factory.mktemp("tools"), models) as found:
        yield found
