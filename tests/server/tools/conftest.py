"""A server for every format of tool calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from scripted_model import write_scripted_model
from serving import Server, serve
from session_options import EXACT, FIXED
from specllama import SpecSession
from tool_models import SCRIPTS

SCRIPTED = {**EXACT, **FIXED, "kv_type": "f16"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    """A server for every format."""
    folder = tmp_path_factory.mktemp("tools")
    with ExitStack() as stack:
        found = {}
        for name, script in SCRIPTS.items():
            path = folder / f"{name}.gguf"
            write_scripted_model(
                path, script.pieces, control=script.control, chat_template=script.template,
                n_ctx=2048, any_text=True,
            )  # fmt: skip
            session = stack.enter_context(SpecSession(path, **SCRIPTED))
            found[name] = stack.enter_context(serve(session))
        yield found
