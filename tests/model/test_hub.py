"""Models by name, with a small hub on loopback, the real huggingface_hub, and commands in a shell.
huggingface_hub reads its environment variables when it is imported, so each case is a process."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub_server import HubServer, serve
from specllama import ArgumentError, ModelError, SpecSession
from specllama.model.hub import HubName

PROMPT = "def main():\n"
CPU = ["-kv", "q8_0", "-fa", "on", "-ngl", "0", "-t", "1"]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def hub(bundled_model: Path) -> Iterator[HubServer]:
    target = bundled_model.read_bytes()
    draft = bundled_model.with_name("draft-q8_0.gguf").read_bytes()
    repos = {
        "org/pair": {"README.md": b"#", "target-Q8_0.gguf": target, "draft-Q8_0.gguf": draft},
        "org/draft-GGUF": {"mmproj-Q4_K_M.gguf": b"image", "draft-Q4_K_M.gguf": draft},
        "org/text": {"README.md": b"#"},
    }
    with serve(repos) as server:
        yield server


def fetch(run: Run, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Print the path of a fetched file, or an error as the commands do."""
    script = """if True:
        import sys, time
        from specllama import SpecllamaError
        from specllama.model.hub import fetch
        time.sleep = lambda seconds: None  # between two attempts
        try:
            print(fetch(sys.argv[1]))
        except SpecllamaError as error:
            sys.exit(f"{type(error).__name__}: {error}")
    """
    return run("-c", script, name, **variables)


def fetched(run: Run, name: str, **variables: str) -> Path:
    process = fetch(run, name, **variables)
    assert process.returncode == 0, process.stderr
    return Path(process.stdout.strip())


def refusal(run: Run, name: str, **variables: str) -> str:
    """Return the last line; earlier ones may be huggingface_hub's warnings of its attempts."""
    process = fetch(run, name, **variables)
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    return process.stderr.strip().splitlines()[-1]


# Which file a name selects.

FILES = [
    "README.md", "m-BF16.gguf", "m-F16.gguf", "m-IQ4_XS.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf",
    "mmproj-F16.gguf", "big/m-Q6_K-00001-of-00002.gguf", "big/m-Q6_K-00002-of-00002.gguf",
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("a/b", ["m-Q4_K_M.gguf"]),
        ("hf://a/b", ["m-Q4_K_M.gguf"]),
        ("a/b:q8_0", ["m-Q8_0.gguf"]),
        ("a/b:F16", ["m-F16.gguf"]),
        ("a/b:bf16", ["m-BF16.gguf"]),
        ("a/b:Q6_K", FILES[-2:]),
        ("a/b/*Q4_K_M.gguf", ["m-Q4_K_M.gguf"]),
        ("a/b/*Q6_K*", FILES[-2:]),
        ("a/b/big/*.gguf", FILES[-2:]),
        ("a/b/*-F16.gguf", ["m-F16.gguf"]),
        ("a/b/mmproj-F16.gguf", ["mmproj-F16.gguf"]),
    ],
)
def test_a_hub_name_chooses_files(name: str, files: list[str]) -> None:
    assert HubName.parse(name).choose(FILES) == files


def test_a_hub_name_without_a_quant_prefers_smaller_weights() -> None:
    name = HubName.parse("a/b")
    assert name.choose(["a-F16.gguf", "b-Q8_0.gguf"]) == ["b-Q8_0.gguf"]
    assert name.choose(["b-F16.gguf", "a-F32.gguf", "mmproj.gguf"]) == ["a-F32.gguf"]


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("a/b:Q2_K", FILES, r"No file of a/b is of type Q2_K; it has big/m-Q6_K-00001.*, mmproj"),
        ("a/b/*Q9*", FILES, r'No file of a/b matches "\*Q9\*"; it has '),
        (
            "a/b/*F16.gguf",
            FILES,
            r'"\*F16.gguf" matches 2 files of a/b: m-BF16.gguf, m-F16.gguf; name',
        ),
        ("a/b", ["README.md"], "a/b has no GGUF files"),
        ("a/b", ["x-00001-of-00003.gguf", "x-00003-of-00003.gguf"], "lacks x-00002-of-00003.gguf"),
        ("a/b:Q2_K", [f"{i:02}.gguf" for i in range(25)], "18.gguf, 19.gguf and 5 more"),
    ],
)
def test_a_hub_name_without_a_matching_file_is_refused(
    name: str, files: list[str], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        HubName.parse(name).choose(files)


@pytest.mark.parametrize(
    "name",
    ["", "a", "/b", "a/", "a/b:", "a/b/", "a/b:Q8_0/x.gguf", "a b/c", "a/b\n", "../b", "a/../b"],
)
def test_bad_hub_names_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="is not a name of a model on the Hub"):
        HubName.parse(name)


def test_hub_names_are_checked_before_anything_is_loaded() -> None:
    with pytest.raises(ArgumentError, match="is not a name of a model on the Hub"):
        SpecSession("hf://nonsense")
    with pytest.raises(ArgumentError, match="is not a name of a model on the Hub"):
        SpecSession(draft="hf://nonsense")
    with pytest.raises(ArgumentError, match="is not a name of a model on the Hub"):
        SpecSession.from_pretrained("a/b:Q8_0", filename="x.gguf")
    with pytest.raises(ArgumentError, match="repo_id must be a str"):
        SpecSession.from_pretrained(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="temperatur"):
        SpecSession.from_pretrained("a/b", temperatur=1)


# Downloads.


def test_from_pretrained_downloads_target_and_draft(
    run: Run, hub: HubServer, open_session: Callable[..., SpecSession]
) -> None:
    script = f"""if True:
        from specllama import SpecSession
        with SpecSession.from_pretrained(
            "org/pair", filename="target*.gguf", draft="hf://org/draft-GGUF",
            kv_type="q8_0", flash_attn=True, n_gpu_layers=0, n_threads=1, spec_length=4,
        ) as session:
            result = session.generate({PROMPT!r}, max_tokens=30)
        assert result.stats.draft_decoded_tokens > 0
        print(result.text, end="")
    """
    process = run("-c", script)
    assert process.returncode == 0, process.stderr
    assert process.stdout == open_session().generate(PROMPT, max_tokens=30).text
    assert {file for file, _ in hub.downloads()} == {"target-Q8_0.gguf", "draft-Q4_K_M.gguf"}


def test_a_file_is_downloaded_once_and_works_offline(run: Run, hub: HubServer) -> None:
    path = fetched(run, "org/pair:Q8_0")
    assert path.read_bytes() == hub.repos["org/pair"]["draft-Q8_0.gguf"]
    assert fetched(run, "org/pair:Q8_0") == path
    assert hub.downloads() == [("draft-Q8_0.gguf", None)]

    n_requests = len(hub.requests)
    assert fetched(run, "org/pair:Q8_0", HF_HUB_OFFLINE="1") == path
    assert len(hub.requests) == n_requests
    nobody = "http://127.0.0.1:9"
    assert fetched(run, "org/pair", HF_ENDPOINT=nobody) == path
    # A file that is not in the cache.
    message = refusal(run, "org/pair/target-Q8_0.gguf", HF_HUB_OFFLINE="1")
    assert message.startswith("HubError: HF_HUB_OFFLINE is set and the cache has no such file")
    message = refusal(run, "org/pair/target-Q8_0.gguf", HF_ENDPOINT=nobody)
    assert message.startswith("HubError: Asking for the files of org/pair failed (")
    assert message.endswith(f"check the connection to {nobody} and try again.")


def test_all_parts_of_a_split_model_are_downloaded(run: Run, hub: HubServer) -> None:
    hub.repos["org/big"] = {f"m-{i:05}-of-00003.gguf": b"x" * i for i in (1, 2, 3)}
    path = fetched(run, "org/big")
    assert path.name == "m-00001-of-00003.gguf"
    for i in (1, 2, 3):
        assert path.with_name(f"m-{i:05}-of-00003.gguf").stat().st_size == i
    assert fetched(run, "org/big", HF_HUB_OFFLINE="1") == path


def test_a_broken_download_resumes(run: Run, hub: HubServer) -> None:
    # huggingface_hub writes 10 MiB at a time; a break loses what arrived after the last write.
    whole = b"".join(i.to_bytes(4, "little") for i in range(8 << 20))
    hub.repos["org/big"] = {"big.gguf": whole}
    hub.breaks["big.gguf"] = [15 << 20, 15 << 20]
    # It resumes at once; older versions resume with the next call.
    for _ in range(2):
        fetch(run, "org/big")
    assert fetched(run, "org/big").read_bytes() == whole
    spans = [None, f"bytes={10 << 20}-", f"bytes={20 << 20}-"]
    assert hub.downloads() == [("big.gguf", span) for span in spans]


def test_a_download_that_keeps_failing_gives_one_sentence(run: Run, hub: HubServer) -> None:
    hub.breaks["target-Q8_0.gguf"] = [1_000_000] + [0] * 20
    message = refusal(run, "org/pair/target-Q8_0.gguf")
    assert message.startswith("HubError: The download of target-Q8_0.gguf from org/pair failed (")
    # An unfinished file is not used.
    message = refusal(run, "org/pair/target-Q8_0.gguf", HF_HUB_OFFLINE="1")
    assert "the cache has no such file" in message
    hub.breaks.clear()
    whole = hub.repos["org/pair"]["target-Q8_0.gguf"]
    assert fetched(run, "org/pair/target-Q8_0.gguf").read_bytes() == whole


def test_refusals_of_the_hub_name_the_cause(run: Run, hub: HubServer) -> None:
    hub.gated.add("org/pair")
    for name, message in {
        "org/nothing": f"ModelError: There is no repository org/nothing at {hub.endpoint}, or it",
        "org/text": "ModelError: org/text has no GGUF files",
        "org/pair:Q5_K_M": "ModelError: No file of org/pair is of type Q5_K_M; it has draft-Q8_0",
        "org/pair/*.gguf": 'ModelError: "*.gguf" matches 2 files of org/pair: draft-Q8_0.gguf, ',
        "org/pair": f"ModelError: org/pair is gated; ask for access at {hub.endpoint}/org/pair",
        "org/a..b": 'ArgumentError: "org/a..b" is not a name of a repository: ',
    }.items():
        assert refusal(run, name).startswith(message)
    message = refusal(run, "org/draft-GGUF", HF_TOKEN="hf_wrong")
    assert message.startswith(f"ModelError: {hub.endpoint} does not let you read org/draft-GGUF; ")
    assert fetched(run, "org/draft-GGUF", HF_TOKEN=hub.token)


def test_a_download_that_cannot_be_stored_gives_one_sentence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    message = refusal(run, "org/pair", HF_HUB_CACHE=str(tmp_path / "file" / "hub"))
    assert message.startswith("HubError: The download of draft-Q8_0.gguf from org/pair cannot be s")
    assert message.endswith("Not a directory.")


def test_a_missing_huggingface_hub_gives_the_install_command(run: Run) -> None:
    script = """if True:
        import sys
        sys.modules["huggingface_hub"] = None
        from specllama.__main__ import main
        sys.exit(main(["bench", "-hf", "org/pair"]))
    """
    process = run("-c", script)
    assert process.returncode == 1
    assert process.stderr.strip() == (
        "specllama: Models by name need the package huggingface_hub (pip install huggingface_hub)."
    )


# Commands.

SPEC_CLI = ["-c", "from specllama_light.command import spec_cli; spec_cli()"]


def test_spec_cli_downloads_by_name(
    run: Run, hub: HubServer, open_session: Callable[..., SpecSession]
) -> None:
    expected = open_session().generate(PROMPT, max_tokens=30).text
    prompt = ["-p", PROMPT, "-n", "30"]
    for models in (
        ["-hf", "org/pair:target-Q8_0", "-hfd", "org/draft-GGUF"],
        ["--hf-repo=org/pair/target*", "--hf-repo-draft", "hf://org/draft-GGUF:q4_k_m"],
        ["--model=hf://org/pair/target-Q8_0.gguf"],
    ):
        process = run(*SPEC_CLI, *CPU, *models, *prompt)
        assert process.returncode == 0, process.stderr
        assert process.stdout == expected
    n_requests = len(hub.requests)
    process = run(*SPEC_CLI, *CPU, "-hf", "org/pair:target-Q8_0", *prompt, HF_HUB_OFFLINE="1")
    assert process.stdout == expected
    assert len(hub.requests) == n_requests


def test_spec_cli_prints_help_without_the_hub(run: Run, hub: HubServer) -> None:
    for option in ("--help", "-h", "--version", "--list-devices"):
        process = run(*SPEC_CLI, "-hf", "org/pair", "-hfd", "org/nothing", option)
        assert process.returncode == 0, process.stderr
        assert process.stdout
    assert hub.requests == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-hf", "org/nothing", "-p", "x"], "There is no repository org/nothing"),
        (["-hf", "nonsense", "-p", "x"], '"nonsense" is not a name of a model on the Hub'),
        (["-p", "x", "-hf"], "-hf needs a value"),
    ],
)
def test_spec_cli_refuses_bad_hub_names(run: Run, arguments: list[str], message: str) -> None:
    process = run(*SPEC_CLI, *arguments)
    assert process.returncode == 2
    assert process.stderr.startswith(f"spec-cli: {message}")
    assert len(process.stderr.strip().splitlines()) == 1


def test_bench_and_chat_accept_hub_names(run: Run, hub: HubServer) -> None:
    options = ["-ngl", "0", "-t", "1"]
    process = run(
        "-m", "specllama", "bench", "-hf", "org/pair:target-Q8_0", "-hfd", "org/draft-GGUF",
        "--workload", "free", "-n", "8", "--repeat", "1", *options,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert "draft model: hf://org/draft-GGUF" in process.stdout
    process = run("-m", "specllama", "chat", "-hf", "org/pair/target*", *options)
    assert process.returncode == 2
    assert "has no chat template" in process.stderr
    process = run("-m", "specllama", "chat", "-hf", "a/b", "-m", "x.gguf")
    assert process.returncode == 2
    assert "not allowed with argument" in process.stderr
