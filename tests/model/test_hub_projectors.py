"""Projectors in the repository of a model on the Hub, and next to a model."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub_server import HubServer, serve
from specllama import SpecSession
from vision_models import write_gemma3

Run = Callable[..., subprocess.CompletedProcess[str]]

SESSION = """if True:
    import sys
    from specllama import SpecSession
    options = {"mmproj": None} if sys.argv[1:] else {}
    with SpecSession("hf://org/some:F32", None, n_gpu_layers=0, n_threads=1, **options) as session:
        print("sees" if session.sees else "reads")
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubServer]:
    model = write_gemma3(tmp_path)
    files = {"some-F32.gguf": model.text, "mmproj-BF16.gguf": model.projector}
    with serve({"org/some": {name: path.read_bytes() for name, path in files.items()}}) as server:
        yield server


def downloaded(hub: HubServer) -> list[str]:
    return sorted(file for file, _ in hub.downloads())


def test_a_projector_is_downloaded_with_its_model(run: Run, hub: HubServer) -> None:
    process = run("-c", SESSION)
    assert process.stdout == "sees\n", process.stderr
    assert downloaded(hub) == ["mmproj-BF16.gguf", "some-F32.gguf"]
    assert "specllama: Downloading mmproj-BF16.gguf of org/some (" in process.stderr
    assert "--no-mmproj leaves it out" in process.stderr
    process = run("-c", SESSION)  # from the cache
    assert process.stdout == "sees\n", process.stderr
    assert "Downloads" not in process.stderr
    assert len(downloaded(hub)) == 2


def test_no_projector_is_downloaded_for_text_only(run: Run, hub: HubServer) -> None:
    process = run("-c", SESSION, "text")
    assert process.stdout == "reads\n", process.stderr
    assert downloaded(hub) == ["some-F32.gguf"]


def test_a_failed_download_of_a_projector_leaves_a_text_model(run: Run, hub: HubServer) -> None:
    hub.missing.add("mmproj-BF16.gguf")
    process = run("-c", SESSION)
    assert process.stdout == "reads\n", process.stderr


def test_a_projector_next_to_a_model_is_found_and_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = write_gemma3(tmp_path)
    options = {"n_gpu_layers": 0, "n_threads": 1}
    with SpecSession(model.text, None, **options) as session:  # type: ignore[arg-type]
        assert session.sees
    assert f"Using the projector {model.projector}; --no-mmproj" in capfd.readouterr().err
    for left_out in ({"mmproj": None}, {"mmproj": "none"}, {"exact": True}):
        with SpecSession(model.text, None, **options, **left_out) as session:  # type: ignore[arg-type]
            assert not session.sees
        assert "mmproj" not in capfd.readouterr().err
