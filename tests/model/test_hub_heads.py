"""Heads in a model's repository on the Hub: which are downloaded with the model."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from heads import write_perfect_pair
from hub_server import HubServer, serve
from specllama.model.hub import HubName

Run = Callable[..., subprocess.CompletedProcess[str]]

SESSION = """if True:
    import sys
    from specllama import SpecllamaError, SpecSession
    draft = sys.argv[1] if sys.argv[1:] else "auto"
    try:
        with SpecSession("hf://org/some:F32", draft, n_gpu_layers=0, n_threads=1) as session:
            session.generate([1, 5, 6] * 5, max_tokens=4)
    except SpecllamaError as error:
        sys.exit(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, bytes]:
    """A model and a fitting head."""
    model, head = write_perfect_pair(tmp_path / "written", shares=False)
    return {"some-F32.gguf": model.read_bytes(), "eagle3-some-F32.gguf": head.read_bytes()}


@pytest.fixture
def hub(files: dict[str, bytes]) -> Iterator[HubServer]:
    with serve({"org/some": files}) as server:
        yield server


def downloaded(hub: HubServer) -> list[str]:
    return [file for file, _ in hub.downloads()]


FILES = ["m-Q4_K_M.gguf", "mtp-m-BF16.gguf", "mtp-m-Q4_K_M.gguf", "mtp-m-Q8_0.gguf", "mmproj.gguf"]


@pytest.mark.parametrize(
    ("model", "head"),
    [
        ("m-Q4_K_M.gguf", "mtp-m-Q4_K_M.gguf"),
        ("m-BF16.gguf", "mtp-m-BF16.gguf"),
        ("m-Q6_K.gguf", "mtp-m-Q8_0.gguf"),
        ("m.gguf", "mtp-m-Q8_0.gguf"),
    ],
)
def test_the_head_of_the_models_quant_is_chosen(model: str, head: str) -> None:
    assert HubName.parse("a/b").choose_head(FILES, model) == head


def test_a_repository_without_heads_gives_none() -> None:
    assert HubName.parse("a/b").choose_head(["m-Q8_0.gguf", "mmproj.gguf"], "m-Q8_0.gguf") is None


def test_a_large_head_is_only_mentioned_unless_requested(run: Run, hub: HubServer) -> None:
    process = run("-c", SESSION)
    assert process.returncode == 0, process.stderr
    assert downloaded(hub) == ["some-F32.gguf"]
    said = [line for line in process.stderr.splitlines() if "eagle3-some-F32.gguf" in line]
    assert len(said) == 1
    assert said[0].startswith("specllama: Not downloaded: ")
    assert "MB" in said[0]
    assert "-hfd auto" in said[0]
    assert "eagle3" not in run("-c", SESSION).stderr  # the notice comes only with the download


def test_a_large_head_is_downloaded_if_requested(run: Run, hub: HubServer) -> None:
    process = run("-c", SESSION, "hf://auto")
    assert process.returncode == 0, process.stderr
    assert sorted(downloaded(hub)) == ["eagle3-some-F32.gguf", "some-F32.gguf"]
    assert "specllama: Downloading eagle3-some-F32.gguf" in process.stderr
    assert "used to draft for it" in process.stderr
    # From the cache, no download is reported.
    process = run("-c", SESSION)
    assert process.returncode == 0, process.stderr
    assert len(downloaded(hub)) == 2
    assert "Downloads" not in process.stderr
    assert "used to draft for it" in process.stderr


def test_a_small_head_is_downloaded_with_its_model(
    run: Run, hub: HubServer, files: dict[str, bytes]
) -> None:
    files["some-F32.gguf"] += bytes(10 * len(files["eagle3-some-F32.gguf"]))
    process = run("-c", SESSION)
    assert process.returncode == 0, process.stderr
    assert sorted(downloaded(hub)) == ["eagle3-some-F32.gguf", "some-F32.gguf"]
    assert "specllama: Downloading eagle3-some-F32.gguf of org/some (" in process.stderr


@pytest.mark.parametrize("draft", ["ngram", "mtp"])
def test_no_head_is_downloaded_if_another_drafter_is_requested(
    run: Run, hub: HubServer, files: dict[str, bytes], draft: str
) -> None:
    files["some-F32.gguf"] += bytes(10 * len(files["eagle3-some-F32.gguf"]))
    run("-c", SESSION, draft)
    assert downloaded(hub) == ["some-F32.gguf"]


def test_a_failed_download_of_an_optional_head_is_not_an_error(
    run: Run, hub: HubServer, files: dict[str, bytes]
) -> None:
    files["some-F32.gguf"] += bytes(10 * len(files["eagle3-some-F32.gguf"]))
    hub.missing.add("eagle3-some-F32.gguf")
    process = run("-c", SESSION)
    assert process.returncode == 0, process.stderr
    assert "specllama: The download of eagle3-some-F32.gguf" in process.stderr
    process = run("-c", SESSION, "hf://auto")
    assert process.returncode == 1


def test_requesting_a_head_that_the_repository_lacks_is_refused(
    run: Run, hub: HubServer, files: dict[str, bytes]
) -> None:
    del files["eagle3-some-F32.gguf"]
    process = run("-c", SESSION, "hf://auto")
    assert process.returncode == 1
    assert "ModelError: org/some has no file of a head" in process.stderr.splitlines()[-1]


SPEC_CLI = ["-c", "from specllama_light.command import spec_cli; spec_cli()"]
PROMPT = ["-p", "\n", "-n", "4", "-ngl", "0", "-t", "1"]


def test_spec_cli_uses_the_head_of_the_repository(run: Run, hub: HubServer) -> None:
    process = run(*SPEC_CLI, "-hf", "org/some:F32", "-hfd", "auto", *PROMPT)
    assert process.returncode == 0, process.stderr
    assert sorted(downloaded(hub)) == ["eagle3-some-F32.gguf", "some-F32.gguf"]
    assert "used to draft for it" in process.stderr
    process = run(*SPEC_CLI, "-m", "x.gguf", "-hfd", "auto", *PROMPT)
    assert process.returncode == 2
    assert process.stderr.startswith("spec-cli: -hfd auto requires -hf")


def test_spec_cli_downloads_no_head_if_another_drafter_is_requested(
    run: Run, hub: HubServer
) -> None:
    process = run(*SPEC_CLI, "-hf", "org/some:F32", "--draft", "ngram", *PROMPT)
    assert process.returncode == 0, process.stderr
    assert downloaded(hub) == ["some-F32.gguf"]
    assert "eagle3" not in process.stderr
