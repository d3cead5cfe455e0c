"""Fixtures for models by name. huggingface_hub reads its environment variables when it is imported,
so each case is a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hub_server import HubServer

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(hub: HubServer, tmp_path: Path) -> Run:
    """Runs Python with arguments; huggingface_hub uses the test's hub and an empty cache."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HF_") and "proxy" not in name.lower()
    }

    def start(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        own = {
            "HOME": str(tmp_path),
            "HF_HOME": str(tmp_path / "hf"),
            "HF_ENDPOINT": hub.endpoint,
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        return subprocess.run(
            [sys.executable, *arguments],
            env=clean | own | variables, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    return start
