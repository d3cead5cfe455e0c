"""Servers for many requests: sessions of this package, and llama.cpp's server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from specllama.bench import contestants, llama_server
from specllama.bench.contestants import PLAIN, Contestant
from specllama.errors import ArgumentError

_PREFIX = "server"
_USUAL = (_PREFIX, "4", "default")


@dataclass(frozen=True)
class Answer:
    """The answer to a request.

    Attributes:
        tokens: Generated token ids.
        rounds: Target decodes that generated tokens.
        drafted, accepted: Numbers of draft tokens.
    """

    tokens: list[int]
    rounds: int
    drafted: int
    accepted: int


Serve = Callable[[Sequence[list[int]], int], list[Answer]]
"""Continues prompts, given all at once, by at most a number of tokens each."""


@dataclass(frozen=True)
class Server:
    """One way to serve.

    Attributes:
        name: Its name for --contestants.
        n_at_once: Maximum number of requests at once.
        open: Starts it, and ends it afterwards.
    """

    name: str
    n_at_once: int
    open: Callable[[], AbstractContextManager[Serve]]

    @property
    def is_ours(self) -> bool:
        """Whether it is a session of this package."""
        return not self.name.startswith(_PREFIX)


@dataclass(frozen=True)
class Setup:
    """The settings common to all servers.

    Attributes:
        model, draft_model: GGUF files. draft_model None: no draft model.
        n_threads: Threads.
        n_ctx: Tokens of context of each request.
        kv_type: Type of the KV memory.
        draft_type: Type of the draft model's weights in sessions of this package.
        n_gpu_layers: Layers on the GPU; -1: all that fit.
        rpc: RPC servers, for sessions of this package only.
        corpus: A corpus from which our sessions may copy; None: none.
        program: Path of llama-server; None: it is not measured.
    """

    model: str
    draft_model: str | None
    n_threads: int
    n_ctx: int
    kv_type: str
    draft_type: str
    n_gpu_layers: int
    rpc: str | None
    corpus: str | None
    program: Path | None


def choose(names: str | None, setup: Setup, at_once: Sequence[int]) -> list[Server]:
    """Return the servers to measure: our contestants with one request after another, plain first;
    then, for each number of requests at once, our contestants and llama-server's settings.

    Args:
        names: As for `contestants.choose`, and names of settings: "server", and "server-TYPE-N"
            with a type of speculation and a draft length, or "default". None: our usual
            contestants, and llama-server without speculation, with length 4 and with defaults.
        setup: Their common settings.
        at_once: Numbers of requests at once.

    Raises:
        ArgumentError: A contestant does not exist, or something that it needs is missing.
    """
    if setup.program is not None and not setup.program.is_file():
        raise ArgumentError(f"There is no file {setup.program}; give the path of llama-server.")
    settings = {} if setup.program is None else _settings(setup)
    ours, theirs = names, list(settings)
    if names is None:
        theirs = [name for name in settings if name.split("-")[-1] in _USUAL]
    elif names != "all":
        theirs = [name for name in names.split(",") if name.startswith(_PREFIX)]
        ours = ",".join(name for name in names.split(",") if name not in theirs) or PLAIN.name
    for name in theirs:
        if name not in settings:
            raise ArgumentError(
                f"There is no contestant {name!r}; choose from {', '.join(settings)}."
                if settings
                else f"The contestant {name} needs llama.cpp's llama-server (--llama-server)."
            )
    chosen = contestants.choose(ours, with_model=setup.draft_model is not None)
    servers = []
    for n in (1, *at_once):
        servers += [Server(one.name, n, partial(_session, one, setup, n)) for one in chosen]
        if n > 1:
            servers += [
                Server(name, n, partial(_llama_server, settings[name], setup, n)) for name in theirs
            ]
    return servers


def _settings(setup: Setup) -> dict[str, list[str]]:
    """Return the flags of llama-server by the name of the setting."""
    return {_PREFIX: []} | {
        f"{_PREFIX}-{kind}-{name}": flags
        for kind, settings in llama_server.spec_types(setup.draft_model).items()
        for name, flags in settings.items()
    }


@contextmanager
def _session(contestant: Contestant, setup: Setup, n_at_once: int) -> Iterator[Serve]:
    with contestants.open_session(
        contestant,
        setup.model,
        setup.draft_model,
        n_seq=n_at_once,
        n_ctx=setup.n_ctx,
        n_threads=setup.n_threads,
        n_gpu_layers=setup.n_gpu_layers,
        rpc=setup.rpc,
        kv_type=setup.kv_type,
        draft_type=setup.draft_type,
        corpus=setup.corpus,
    ) as session:

        def serve(prompts: Sequence[list[int]], n_tokens: int) -> list[Answer]:
            results = session.generate([*prompts], max_tokens=n_tokens)
            return [
                Answer(one.tokens, one.stats.rounds, one.stats.drafted, one.stats.accepted)
                for one in results
            ]

        yield serve


@contextmanager
def _llama_server(flags: Sequence[str], setup: Setup, n_at_once: int) -> Iterator[Serve]:
    assert setup.program is not None
    common = llama_server.model_flags(
        setup.model,
        n_threads=setup.n_threads,
        n_ctx=n_at_once * setup.n_ctx,
        kv_type=setup.kv_type,
    )
    if setup.n_gpu_layers == 0:
        common += ["-dev", "none", "-devd", "none"]
    elif setup.n_gpu_layers > 0:
        common += ["-ngl", str(setup.n_gpu_layers)]
    with (
        llama_server.serving(setup.program, [*common, *flags], n_slots=n_at_once) as server,
        ThreadPoolExecutor(n_at_once) as clients,
    ):

        def serve(prompts: Sequence[list[int]], n_tokens: int) -> list[Answer]:
            completions = clients.map(lambda prompt: server.complete(prompt, n_tokens), prompts)
            return [
                Answer(one.tokens, len(one.tokens) - one.accepted, one.drafted, one.accepted)
                for one in completions
            ]

        yield serve
