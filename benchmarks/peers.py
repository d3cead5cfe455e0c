"""Ways to continue a prompt greedily, each with a fixed setting: this package, llama-cpp-python,
and llama.cpp's own programs. All have the same number of layers on the GPU, type of KV memory, and
attention."""

from __future__ import annotations

import itertools
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import llama_cpp
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding
from specllama import SpecSession
from specllama.bench.llama_server import draft_lengths, model_flags, serving, spec_types

PROGRAMS = ("llama-server", "llama-speculative-simple")
"""Programs of llama.cpp that take part."""

KV_TYPES = {"f16": llama_cpp.GGML_TYPE_F16, "q8_0": llama_cpp.GGML_TYPE_Q8_0}

_LOOKUPS = (2, 10)
_N_ATTEMPTS = 5
"""Attempts with llama-speculative-simple, which sometimes ends without printing its time."""


@dataclass(frozen=True)
class Job:
    """The common settings.

    Attributes:
        model, draft_model: GGUF files; None: no draft model.
        n_threads: Threads of both models.
        n_gpu_layers: Layers of both models on the GPU; 0: do not use a GPU, -1: all that fit.
        n_ctx: Tokens of context.
        kv_type: Type of the KV memory, a key of KV_TYPES.
        flash: Whether to use flash attention.
        programs: Folder of llama.cpp's programs; None: without them.
    """

    model: str
    draft_model: str | None
    n_threads: int
    n_gpu_layers: int
    n_ctx: int
    kv_type: str
    flash: bool
    programs: Path | None


@dataclass(frozen=True)
class Prompt:
    """A prompt as text and as token ids."""

    text: str
    tokens: list[int]


@dataclass(frozen=True)
class Run:
    """A continuation.

    Attributes:
        tokens: Its token ids; None if the program does not tell them.
        n_timed: Tokens after the first.
        seconds: Time of the timed tokens.
        whole_seconds: Time of the prompt and all tokens; None if the program does not tell it.
    """

    tokens: list[int] | None
    n_timed: int
    seconds: float
    whole_seconds: float | None


Continue = Callable[[Prompt, int], Run]
"""Continues a prompt by so many tokens."""


@dataclass(frozen=True)
class Setting:
    """One way to continue prompts.

    Attributes:
        peer: Name of the peer.
        name: Name of the setting, unique for the peer.
        open: Opens it, and cleans up afterwards.
    """

    peer: str
    name: str
    open: Callable[[], AbstractContextManager[Continue]]


def ours(job: Job) -> list[Setting]:
    """Return this package's settings: plain, with n-grams, and with n-grams and the draft model."""
    drafts = {"plain": None, "ngram": "ngram"}
    if job.draft_model is not None:
        drafts["cascade"] = job.draft_model
    return [
        Setting("specllama", name, lambda draft=draft: _session(job, draft))
        for name, draft in drafts.items()
    ]


def peers(job: Job) -> list[Setting]:
    """Return all settings of all available peers."""
    lookup = "llama-cpp-python lookup"
    settings = [Setting("llama-cpp-python plain", "", lambda: _llama(job, 0))]
    settings += [Setting(lookup, str(n), lambda n=n: _llama(job, n)) for n in _LOOKUPS]
    if job.programs is None:
        return settings
    settings.append(Setting("llama-server plain", "", lambda: _server(job, [])))
    for kind, variants in spec_types(job.draft_model).items():
        settings += [
            Setting(f"llama-server {kind}", name, lambda flags=flags: _server(job, flags))
            for name, flags in variants.items()
        ]
    if job.draft_model is not None:
        settings += [
            Setting("llama-speculative-simple", name, lambda flags=flags: _simple(job, flags))
            for name, flags in draft_lengths("--spec-draft-n-max").items()
        ]
    return settings


def _timed(tokens: Iterable[int]) -> Run:
    """Time all tokens by the wall clock, so that Python's time counts."""
    taken: list[int] = []
    start = time.perf_counter()
    first = 0.0
    for token in tokens:
        taken.append(token)
        first = first or time.perf_counter()
    end = time.perf_counter()
    return Run(taken, len(taken) - 1, end - first, end - start)


@contextmanager
def _session(job: Job, draft: str | None) -> Iterator[Continue]:
    with SpecSession(
        job.model,
        draft,
        n_ctx=job.n_ctx,
        n_threads=job.n_threads,
        n_gpu_layers=job.n_gpu_layers,
        flash_attn=job.flash,
        kv_type=job.kv_type,
    ) as session:

        def run(prompt: Prompt, n_tokens: int) -> Run:
            stream = session.stream(prompt.tokens, max_tokens=n_tokens)
            return _timed(chunk.token for chunk in stream if chunk.token is not None)

        yield run


@contextmanager
def _llama(job: Job, n_draft: int) -> Iterator[Continue]:
    llama = llama_cpp.Llama(
        job.model,
        n_ctx=job.n_ctx,
        n_threads=job.n_threads,
        n_threads_batch=job.n_threads,
        n_gpu_layers=job.n_gpu_layers,
        flash_attn=job.flash,
        type_k=KV_TYPES[job.kv_type],
        type_v=KV_TYPES[job.kv_type],
        draft_model=LlamaPromptLookupDecoding(num_pred_tokens=n_draft) if n_draft else None,
        logits_all=n_draft > 0,  # drafts need this for prompts of more than n_batch tokens
        verbose=False,
    )

    def run(prompt: Prompt, n_tokens: int) -> Run:
        def tokens() -> Iterator[int]:
            generated = llama.generate([*prompt.tokens], temp=0.0)  # it clears the list
            for token in itertools.islice(generated, n_tokens):
                yield token
                if token == llama.token_eos():
                    return

        return _timed(tokens())

    yield run
    llama.close()


def _flags(job: Job) -> list[str]:
    flags = model_flags(job.model, n_threads=job.n_threads, n_ctx=job.n_ctx, kv_type=job.kv_type)
    flags += ["-b", str(job.n_ctx), "-fa", "on" if job.flash else "off"]
    if job.n_gpu_layers == 0:
        return [*flags, "-dev", "none", "-devd", "none"]
    layers = "all" if job.n_gpu_layers < 0 else str(job.n_gpu_layers)
    return [*flags, "-ngl", layers, "-ngld", layers]


@contextmanager
def _server(job: Job, flags: Iterable[str]) -> Iterator[Continue]:
    """Start a new llama-server, because some of its drafters remember earlier requests."""
    assert job.programs is not None
    with serving(job.programs / "llama-server", [*_flags(job), *flags], n_slots=1) as server:

        def run(prompt: Prompt, n_tokens: int) -> Run:
            start = time.perf_counter()
            # The prompt cache stays on, as in all other peers.
            answer = server.complete(prompt.tokens, n_tokens)
            whole_seconds = time.perf_counter() - start
            return Run(answer.tokens, answer.n_timed, answer.seconds, whole_seconds)

        yield run


@contextmanager
def _simple(job: Job, flags: Iterable[str]) -> Iterator[Continue]:
    """Run llama-speculative-simple once for every prompt. It does not tell its token ids."""
    assert job.programs is not None
    assert job.draft_model is not None
    command = [str(job.programs / "llama-speculative-simple"), *_flags(job), *flags]
    command += ["-md", job.draft_model, "--spec-type", "draft-simple", "--no-escape"]

    def run(prompt: Prompt, n_tokens: int) -> Run:
        for _ in range(_N_ATTEMPTS):
            done = subprocess.run(
                [*command, "-n", str(n_tokens), "-p", prompt.text],
                capture_output=True,
                text=True,
                errors="replace",
            )
            said = re.search(r"decoded +(\d+) tokens in +([\d.]+) seconds", done.stderr)
            if said is not None:
                return Run(None, int(said[1]), float(said[2]), None)
        raise SystemExit(f"{command!r} fails ({done.returncode}):\n{done.stderr[-2000:]}")

    yield run
