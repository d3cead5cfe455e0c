"""`specllama serve`: serves a model over HTTP, by the APIs of OpenAI, Anthropic and Ollama, with a
chat page."""

from __future__ import annotations

import argparse
import logging
import math
import os
import re
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from specllama._core import list_devices
from specllama.commands import _arguments, _serve_options
from specllama.errors import ArgumentError, ModelError, SpecllamaError
from specllama.model.bundled import BUNDLED_MODEL
from specllama.model.hub import SCHEME
from specllama.requests.options import GenerateOptions
from specllama.server.settings import Settings
from specllama.session import SpecSession

if TYPE_CHECKING:
    from specllama.server.models.router import Router

_STDERR = 2


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal ends the server; return the exit code."""
    try:
        from specllama.server.app import App
        from specllama.server.error import log
        from specllama.server.http.graceful import Application, GracefulServer
    except ImportError as error:
        raise ArgumentError(
            f"The server needs {error.name}; run: pip install 'specllama[server]'"
        ) from None
    settings = _settings(arguments)
    several = _router(arguments, settings)
    log_file = None if arguments.log_file is None else _opened(arguments.log_file)
    with ExitStack() as opened:
        listening = [opened.enter_context(one) for one in _listening(arguments)]
        application: Application
        if several is None:
            session = opened.enter_context(_session(arguments, settings))
            application, description = App(session, settings), _description(session, arguments)
            # Analysing the chat template takes a while. No request should wait for it.
            later = [Thread(target=_describe_answers, args=(session,), daemon=True)]
        else:
            application, description = several
            later = []
        _log_to([_STDERR, *([] if log_file is None else [log_file])])
        log.setLevel(logging.DEBUG if arguments.verbose else logging.INFO)
        url, *others = map(_url, listening)
        what = settings.name if several is None else "several models"
        log.info("Serving %s; API: %s/v1; page: %s", what, url, url)
        for other in others:
            log.info("For Ollama clients, also: %s", other)
        for line in description:
            log.info("%s", line)
        for thread in later:
            thread.start()
        GracefulServer(
            application, arguments.shutdown_timeout, arguments.forwarded_allow_ips
        ).serve_at(listening)
    return 0


def _settings(arguments: argparse.Namespace) -> Settings:
    """Return the server's settings. Raises ArgumentError."""
    for origin in arguments.cors_origin:
        if not re.fullmatch(r"\*|null|[a-z][a-z0-9+.-]*://[^/\s]+", origin):
            raise ArgumentError(
                f'--cors-origin must be like "https://example.com", without a path, or "*", not '
                f"{origin!r}."
            )
    sampling = _arguments.generate_options(arguments)
    if arguments.n_predict is not None:
        sampling["max_tokens"] = arguments.n_predict
    keys = arguments.api_key or os.environ.get("SPECLLAMA_API_KEY")
    api_keys = tuple(keys.split(",")) if keys else ()
    if not all(key and key.isprintable() and key == key.strip() for key in api_keys):
        raise ArgumentError(
            "An API key (--api-key or SPECLLAMA_API_KEY) is empty, has spaces around it, or has "
            "characters that are not printable."
        )
    if arguments.memory_file is not None and len(api_keys) > 1:
        raise ArgumentError(
            f"--memory-file is for one API key, but there are {len(api_keys)}; start a server for "
            "each, or leave it out."
        )
    return Settings(
        name=arguments.alias or model_name(str(arguments.model or BUNDLED_MODEL)),
        host=arguments.host,
        api_keys=api_keys,
        cors_origins=tuple(arguments.cors_origin),
        max_body=arguments.max_body,
        allow_image_urls=arguments.allow_image_urls,
        max_prompt=arguments.max_prompt,
        timeout=arguments.timeout,
        idle=arguments.idle_timeout,
        slot_save_path=_folder(arguments.slot_save_path),
        log_texts=arguments.log_texts,
        sampling=sampling,
    )


def _router(arguments: argparse.Namespace, settings: Settings) -> tuple[Router, list[str]] | None:
    """Return the application for several models, and lines that describe it; None if the server has
    one model. Raises ArgumentError."""
    if arguments.models is None and arguments.models_dir is None:
        if math.isfinite(arguments.sleep_idle_seconds):
            raise ArgumentError("--sleep-idle-seconds requires --models or --models-dir.")
        return None
    if arguments.model is not None or arguments.alias is not None:
        raise ArgumentError("--models and --models-dir exclude -m, -hf and --alias.")
    if arguments.log_texts:
        raise ArgumentError("--log-texts is for a server with one model; leave it out.")
    from specllama.commands.presets import read_models
    from specllama.server.models.loaded_models import LoadedModels
    from specllama.server.models.router import Router

    entries = read_models(arguments)
    if len(settings.api_keys) > 1:
        # The models' processes cannot distinguish the keys of requests.
        entries = [replace(one, arguments=[*one.arguments, "--memory", "0"]) for one in entries]
    most = arguments.models_max or len(entries)
    models = LoadedModels(entries, most, arguments.sleep_idle_seconds, arguments.max_queue)
    names = ", ".join(one.name for one in entries)
    return Router(models, settings), [f"Models, at most {most} loaded at once: {names}"]


def _session(arguments: argparse.Namespace, settings: Settings) -> SpecSession:
    """Return the session of a server of one model."""
    session = SpecSession(
        **{"n_seq": _slots(arguments)} | _arguments.session_options(arguments),
        **_arguments.template_options(arguments),
        max_queue=arguments.max_queue,
        verifies=True,
    )
    # A trial, which raises errors that every answer would have.
    trial: GenerateOptions = {**settings.sampling, "max_tokens": 1}
    session.stream([0], **trial).close()
    if arguments.chat_template is not None:
        _ = session.chat_template  # raises its errors now
    return session


def _log_to(descriptors: Iterable[int]) -> None:
    """Write the log to files. The handlers belong to the root logger, so they also get the messages
    of asyncio: nothing else on the event loop may write to stderr and block it."""
    from specllama.server.http.nonblocking_log import NonblockingHandler

    for descriptor in descriptors:
        handler = NonblockingHandler(descriptor)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
        logging.getLogger().addHandler(handler)


def model_name(model: str) -> str:
    """Return a model's name for answers: its name on the Hub, or that of its file."""
    if model.startswith(SCHEME):
        return model.removeprefix(SCHEME)
    return Path(model).name.removesuffix(".gguf")


def _slots(arguments: argparse.Namespace) -> int:
    """Return the default of --parallel. Each slot takes memory, and with few CPU cores many answers
    at once would be too slow."""
    uses_gpus = arguments.n_gpu_layers != 0 and arguments.device != "none"
    has_gpu = uses_gpus and any(device.takes_layers for device in list_devices())
    return 8 if has_gpu else 4 if (os.cpu_count() or 1) >= 8 else 2


def _description(session: SpecSession, arguments: argparse.Namespace) -> list[str]:
    """Return lines that describe the session."""
    drafts = arguments.draft_model or arguments.drafter
    return [
        f"{session.model_description}; slots: {session.n_seq}, with {session.n_ctx} tokens of "
        f"context each; threads: {session.n_threads}; drafts: {drafts}",
    ]


def _describe_answers(session: SpecSession) -> None:
    """Log the format of a model's answers."""
    from specllama.dialogue.conversation import described_format
    from specllama.server.error import log

    try:
        found = described_format(session)
    except ModelError as error:  # only conversations will be refused
        log.warning("%s", error)
        return
    if found:
        calls = found["tool_calls"]
        log.info("Format of tool calls (source: %s): %r", calls["from"], calls["example"])
        log.info("Tags of thoughts: %s", found["reasoning"] or "none")


def _folder(path: Path | None) -> Path | None:
    """Return a folder. Raises ArgumentError if it is not one, or cannot be written to."""
    if path is not None and not (path.is_dir() and os.access(path, os.W_OK | os.X_OK)):
        raise ArgumentError(f"--slot-save-path {path} is not a writable folder.")
    return path


def _opened(path: Path) -> int:
    """Return a descriptor that appends to a file. Raises SpecllamaError."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise SpecllamaError(f"Cannot write {path}: {error.strerror}.") from None


def _listening(arguments: argparse.Namespace) -> list[socket.socket]:
    """Return the listening sockets, the one for the API first."""
    if arguments.listen_fd is not None:
        from specllama.server.models.parent import end_with_parent

        end_with_parent()
        return [socket.socket(fileno=arguments.listen_fd)]
    ports = [arguments.port]
    if arguments.ollama_port is not None:
        ports.append(arguments.ollama_port)
    return [_listen(arguments.host, port) for port in ports]


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Called before the model is loaded, so that errors come at once."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise SpecllamaError(f"Cannot listen at {host} port {port}: {why}.") from None


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `serve` to the command line."""
    parser = commands.add_parser(
        "serve",
        help="serve a model over HTTP (APIs of OpenAI, Anthropic, Ollama), with a chat page",
        description=__doc__,
    )
    _serve_options.add(parser)
    parser.set_defaults(run=run)
