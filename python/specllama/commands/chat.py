"""`specllama chat`: a conversation in the terminal."""

from __future__ import annotations

import argparse
import sys

from specllama_light.default_model import installed_model

from specllama.commands import _arguments
from specllama.errors import ArgumentError
from specllama.model.chat_template import Message
from specllama.requests.options import GenerateOptions
from specllama.requests.stream import Stream
from specllama.session import SpecSession

_HELP = "Ctrl-C ends an answer, Ctrl-D the conversation; /reset forgets it."


def run(arguments: argparse.Namespace) -> int:
    """Converse until the input ends; the exit code."""
    options = _arguments.session_options(arguments)
    if options["model"] is None:
        options["model"] = installed_model()
        if options["model"] is None:
            raise ArgumentError(
                "Name a model with -m or -hf, or get a small one: pip install 'specllama[demo]'."
            )
    with SpecSession(**options) as session:
        sampling = _arguments.sampling_options(arguments)
        sampling["max_tokens"] = None if arguments.n_predict < 0 else arguments.n_predict
        _converse(session, arguments.system, sampling)
    return 0


def _converse(session: SpecSession, system: str | None, sampling: GenerateOptions) -> None:
    start: list[Message] = [{"role": "system", "content": system}] if system else []
    _ = session.chat_template  # says at once if there is none
    messages = list(start)
    interactive = sys.stdin.isatty()
    if interactive:
        print(f"{session.model_description}. {_HELP}", file=sys.stderr)
    while True:
        if interactive:
            print("> ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        text = line.strip()
        if text == "/reset":
            messages = list(start)
        elif text:
            messages.append({"role": "user", "content": text})
            try:
                stream = session.stream_chat(messages, **sampling)
            except ArgumentError as error:
                if not interactive:
                    raise
                # A message that does not fit is taken back; the conversation is still there.
                messages.pop()
                print(f"specllama: {error}", file=sys.stderr)
                continue
            messages.append({"role": "assistant", "content": _answer(stream)})


def _answer(stream: Stream) -> str:
    """Print an answer as it comes, and its statistics; return its text."""
    with stream:
        try:
            for chunk in stream:
                print(chunk.text, end="", flush=True)
        except KeyboardInterrupt:
            pass
    result = stream.result()
    stats = result.stats
    print(flush=True)
    print(
        f"[{stats.generated_tokens} tokens, {stats.tokens_per_second:.1f} tokens/s, "
        f"{stats.tokens_per_round:.2f} per round, {stats.reused_tokens} of "
        f"{stats.prompt_tokens} prompt tokens reused]",
        file=sys.stderr,
    )
    return result.text


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `chat` to the command line."""
    parser = commands.add_parser("chat", help="converse with a model", description=__doc__)
    _arguments.add_session(
        parser,
        help="GGUF file with a chat template (default: SmolLM2 of specllama[demo])",
        bundled=False,
    )
    parser.add_argument("--system", help="system message")
    parser.add_argument("-n", "--n-predict", type=int, default=-1, help="tokens per answer (all)")
    _arguments.add_sampling(parser)
    parser.set_defaults(run=run)
