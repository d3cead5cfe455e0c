"""Servers of scripted models, and clients of Ollama's API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import ollama
import pytest
from serving import Server, serve_scripted
from tool_models import SCRIPTS

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
    """Servers with models that call two tools, think, or have no chat template."""
    with serve_scripted(tmp_path_factory.mktemp("ollama"), MODELS) as found:
        yield found


@pytest.fixture
def clients(servers: dict[str, Server]) -> Iterator[dict[str, ollama.Client]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(closing(ollama.Client(host=one.url)))
            for name, one in servers.items()
        }
