"""llama.cpp's own server, measured for comparison."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from specllama.errors import ArgumentError, SpecllamaError

LENGTHS = (2, 3, 4, 8, 16)
"""Draft lengths with which llama.cpp's programs are measured."""

_SECONDS_TO_START = 120
_SECONDS_TO_ANSWER = 3600  # enough for a large model on a slow machine

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy for localhost


@dataclass(frozen=True)
class Completion:
    """A continuation by llama-server.

    Attributes:
        tokens: Its token ids.
        n_timed: Number of tokens generated after the prefill.
        seconds: Time of these tokens, measured by the server.
        drafted, accepted: Numbers of draft tokens.
    """

    tokens: list[int]
    n_timed: int
    seconds: float
    drafted: int
    accepted: int


@dataclass(frozen=True)
class LlamaServer:
    """A running server. May be used from any thread.

    Attributes:
        address: Its URL.
    """

    address: str

    def complete(
        self, prompt: Sequence[int], n_tokens: int, *, cache_prompt: bool = True
    ) -> Completion:
        """Continue a prompt greedily, up to `n_tokens` tokens or the end of the text.

        Args:
            prompt: Token ids.
            n_tokens: Maximum number of tokens to generate.
            cache_prompt: Whether the KV memory of an earlier prompt with the same beginning may be
                reused.
        """
        answer = _post(
            f"{self.address}/completion",
            {
                "prompt": list(prompt),
                "n_predict": n_tokens,
                "cache_prompt": cache_prompt,
                "return_tokens": True,
            },
        )
        timings = answer["timings"]
        return Completion(
            tokens=answer["tokens"],
            # The first token is generated with the prompt; "predicted_per_second" also leaves it
            # out.
            n_timed=timings["predicted_n"] - 1,
            seconds=timings["predicted_ms"] / 1e3,
            drafted=timings.get("draft_n", 0),
            accepted=timings.get("draft_n_accepted", 0),
        )


def model_flags(model: str, *, n_threads: int, n_ctx: int, kv_type: str) -> list[str]:
    """Return the flags for all of llama.cpp's programs. Without a draft model, they ignore the
    flags for it.

    Args:
        model: GGUF file.
        n_threads: Threads of each model.
        n_ctx: Tokens of context of all requests together.
        kv_type: Type of the KV memory of both models.
    """
    threads = str(n_threads)
    flags = ["-m", model, "-c", str(n_ctx), "-t", threads, "-tb", threads]
    flags += ["-td", threads, "-tbd", threads]
    flags += ["-ctk", kv_type, "-ctv", kv_type, "-ctkd", kv_type, "-ctvd", kv_type]
    return [*flags, "--temp", "0"]


def spec_types(draft_model: str | None) -> dict[str, dict[str, list[str]]]:
    """Return flags by type of speculation and name of the setting: a setting for each of `LENGTHS`,
    and llama.cpp's default. (The default of a draft model is a length of 3; ngram-cache always
    drafts 8.)"""
    default: dict[str, list[str]] = {"default": []}
    types = {
        "ngram-simple": draft_lengths("--spec-ngram-simple-size-m") | default,
        "ngram-map-k": draft_lengths("--spec-ngram-map-k-size-m") | default,
        # By default it drops drafts of fewer than 48 tokens.
        "ngram-mod": draft_lengths("--spec-ngram-mod-n-min", "0", "--spec-ngram-mod-n-max")
        | default,
        "ngram-cache": default,
    }
    if draft_model is not None:
        types["draft-simple"] = {
            name: [*flags, "-md", draft_model]
            for name, flags in draft_lengths("--spec-draft-n-max").items()
        }
    return {
        kind: {name: ["--spec-type", kind, *flags] for name, flags in settings.items()}
        for kind, settings in types.items()
    }


def draft_lengths(*flags: str) -> dict[str, list[str]]:
    """Return, for each of `LENGTHS` by name, the flags followed by this length."""
    return {str(n): [*flags, str(n)] for n in LENGTHS}


@contextmanager
def serving(
    program: Path, flags: Sequence[str], *, n_slots: int, cache_ram: int = 0
) -> Iterator[LlamaServer]:
    """Start a server, and end it afterwards.

    Args:
        program: Path of llama-server.
        flags: Model and settings.
        n_slots: Maximum number of requests at once.
        cache_ram: RAM in MiB for prompts evicted from their slots.

    Raises:
        ArgumentError: The program cannot be run.
        SpecllamaError: The server does not start.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(program), *flags, "--port", str(port), "-np", str(n_slots)]
    command += ["-cram", str(cache_ram), "--no-ui"]
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile("w+") as log:
        try:
            server = subprocess.Popen(command, stdout=log, stderr=log)
        except OSError as error:
            raise ArgumentError(f"Cannot run {program}: {error.strerror}.") from None
        try:
            _wait(server, address, log)
            yield LlamaServer(address)
        finally:
            server.terminate()
            server.wait()


def _wait(server: subprocess.Popen[bytes], address: str, log: IO[str]) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with _DIRECT.open(f"{address}/health", timeout=_SECONDS_TO_START):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):  # not up, or still loading
            time.sleep(0.1)
    log.seek(0)
    last = "".join(log.readlines()[-1:]).strip()
    assert isinstance(server.args, list)
    raise SpecllamaError(f"{server.args[0]} does not start; its last message: {last or 'none'}")


def _post(address: str, content: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        address, json.dumps(content).encode(), {"Content-Type": "application/json"}
    )
    try:
        with _DIRECT.open(request, timeout=_SECONDS_TO_ANSWER) as answer:
            return json.load(answer)
    except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
        raise SpecllamaError(f"llama-server does not answer: {error}.") from error
