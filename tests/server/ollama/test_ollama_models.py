"""The paths of Ollama's API that describe models, and programs that use them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ollama
import pytest
from serving import Server

Clients = dict[str, ollama.Client]


def test_the_model_is_listed_and_loaded(clients: Clients, servers: dict[str, Server]) -> None:
    (listed,) = clients["thinks"].list().models
    assert listed.model == "test"
    assert len(listed.digest or "") == 64
    assert listed.size
    assert listed.details is not None
    assert (listed.details.format, listed.details.family) == ("gguf", "llama")
    (loaded,) = clients["thinks"].ps().models
    assert loaded.digest == listed.digest
    assert loaded.context_length == servers["thinks"].session.n_ctx


def test_show_has_the_models_capabilities(clients: Clients, servers: dict[str, Server]) -> None:
    for name, able in (
        ("thinks", ["completion", "tools", "thinking"]),
        ("calls", ["completion", "tools"]),
        ("continues", ["completion"]),
    ):
        shown = clients[name].show("test:latest")
        assert shown.capabilities == able
        assert shown.template == (servers[name].session.chat_template_source or "")
    assert shown.modelinfo is not None
    assert shown.modelinfo["llama.context_length"] == servers["continues"].session.n_ctx
    with pytest.raises(ollama.ResponseError, match="There is no model 'other', only") as caught:
        clients["thinks"].show("other")
    assert caught.value.status_code == 404


def test_clients_accept_the_version(servers: dict[str, Server]) -> None:
    version = servers["thinks"].get("/api/version").json()["version"]
    assert [int(part) for part in version.split(".")] >= [0, 6, 4]


def test_creating_pulling_and_deleting_models_is_refused(clients: Clients) -> None:
    client = clients["thinks"]
    for act in (
        lambda: client.pull("m"),
        lambda: client.push("m"),
        lambda: client.delete("m"),
        lambda: client.copy("m", "n"),
        lambda: client.create("m", from_="n"),
    ):
        with pytest.raises(ollama.ResponseError, match="models are given when the server starts"):
            act()
    with pytest.raises(ollama.ResponseError, match="embeddings and rankings are not supported"):
        client.embed("m", "x")


def test_llm_ollama_uses_the_server(servers: dict[str, Server], tmp_path: Path) -> None:
    """The plugin finds the model, asks it, and constrains an answer to a schema."""

    def llm(server: Server, *arguments: str) -> str:
        environment = {
            **os.environ, "LLM_USER_PATH": str(tmp_path), "OLLAMA_HOST": server.url,
        }  # fmt: skip
        process = subprocess.run(
            [sys.executable, "-m", "llm", *arguments],
            env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr
        return process.stdout

    asked = ("-m", "ollama/test", "--no-log", "-o", "temperature", "0", "u")
    assert llm(servers["thinks"], *asked).strip().endswith("It is one.")
    schema: dict[str, Any] = {
        "type": "object", "properties": {"b": {"enum": [1, 2]}}, "required": ["b"],
    }  # fmt: skip
    said = llm(servers["calls"], "--schema", json.dumps(schema), *asked)
    assert json.loads(said)["b"] in (1, 2)
    assert llm(servers["thinks"], "-T", "llm_version", *asked).strip().endswith("It is one.")
