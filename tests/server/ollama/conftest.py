"""Servers of scripted models, and clients of Ollama's API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import ollama
import pytest
from scripted_model import write_scripted_model
from serving import Server, serve
from session_options import EXACT, FIXED
from specllama import SpecSession
from tool_models import SCRIPTS

SCRIPTED = {**EXACT, **FIXED, "kv_type": "f16"}
SHOWN = (
    "{% for m in messages %}[{{ m.role }}] {{ m.content }}"
    "{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n'
    "</tool_call>{{ c.id }}{% endfor %}"
    "{% if m.tool_call_id %}={{ m.tool_call_id }} {{ m.name }}{% endif %}{% endfor %}"
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"
    "{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}{{ reasoning_effort }}"
)
THINKING = ["<think>", "\nA number;", " say one.", "\n</think>", "\n\nIt is ", "one."]
MODELS: dict[str, dict[str, Any]] = {
    "calls": {"pieces": SCRIPTS["hermes"].pieces, "chat_template": SCRIPTS["hermes"].template},
    "thinks": {"pieces": THINKING, "chat_template": SHOWN + "{# <think> #}{{ bos_token }}"},
    "continues": {"pieces": ["a", "b", "c", "d"]},
}


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    """Models that call two tools, that think, and that have no chat template."""
    folder: Path = tmp_path_factory.mktemp("ollama")
    with ExitStack() as stack:
        found = {}
        for name, options in MODELS.items():
            path = folder / f"{name}.gguf"
            write_scripted_model(path, n_ctx=2048, any_text=True, **options)
            session = stack.enter_context(SpecSession(path, **SCRIPTED))
            found[name] = stack.enter_context(serve(session))
        yield found


@pytest.fixture
def clients(servers: dict[str, Server]) -> Iterator[dict[str, ollama.Client]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(closing(ollama.Client(host=one.url)))
            for name, one in servers.items()
        }
