"""Write a target's own answers, to train and measure a head with them:

    python models/answers.py MODEL.gguf answers.jsonl --tokens 300000
    python models/answers.py MODEL.gguf held-out.jsonl --half held-out

The target, in PyTorch, answers requests with its chat template at temperature 0.7 until the file
has this number of tokens. One request in four is from the tuning half of specllama's workloads. The
others are questions about the topics of a list, and tasks with pieces of the standard library on
which the bundled pair was trained. With `--half held-out` it answers the other half of the
workloads, each once.

A line is {"prompt": [token ids], "answer": [token ids]}. After an interruption, run it again to
continue. Needs specllama, which renders the template, and the packages for train.py.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path

import corpus
import torch
from network import MATRIX_TYPE, Memory, Network, load_gguf
from specllama import SpecSession
from specllama.workloads import ANSWERED, Half, load_answered

MOST_PROMPT, MOST_ANSWER = 384, 256
"""In tokens. Longer prompts are left out."""

TOGETHER = 64
TEMPERATURE = 0.7
SEED = 7

ABOUT_TOPICS = (
    "Explain {} to a child of ten.",
    "What should everybody know about {}?",
    "Write a short story about {}.",
    "Give me five pieces of advice about {}.",
    "Write an e-mail to a colleague about {}.",
    "What are the advantages and disadvantages of {}?",
    "List ten facts about {}.",
    "Write a conversation of two friends about {}.",
    "How did {} begin, and how has it changed since?",
    "I am a beginner. Where should I start with {}?",
)

TOPICS = (
    "bees", "bicycles", "board games", "books", "bridges", "camping", "cats", "chess", "cities",
    "cleaning a house", "clocks", "coffee", "cooking rice", "dancing", "deserts", "dogs", "drawing",
    "dreams", "electric cars", "exercise", "fishing", "football", "forests", "friendship",
    "gardens", "glass", "gravity", "healthy food", "history", "horses", "islands",
    "job interviews", "kitchens", "languages", "lightning", "machine learning", "maps", "markets",
    "mathematics", "medicine", "money", "mountains", "museums", "music", "newspapers", "oceans",
    "painting", "photography", "planets", "programming", "public transport", "radio", "rain",
    "recycling", "rivers", "robots", "running", "saving energy", "schools", "sewing", "ships",
    "sleep", "snow", "space travel", "stars", "swimming", "tea", "telephones", "theatre", "time",
    "toys", "trains", "travelling alone", "trees", "vaccines", "vegetables", "volcanoes", "weather",
    "wind power", "working from home",
)  # fmt: skip

WITH_TEXT = (
    "Summarise this in two sentences:\n\n{}",
    "Explain this to a beginner:\n\n{}",
    "Translate this into French:\n\n{}",
    "Write the following again in simpler words:\n\n{}",
    "Which three questions does this answer? Give the answers, too.\n\n{}",
)

WITH_CODE = (
    "What does this Python code do?\n\n```python\n{}\n```",
    "Add type hints and comments, and give me the whole code:\n\n```python\n{}\n```",
    "Write unit tests for this function:\n\n```python\n{}\n```",
    "Choose better names for the variables, and give me the whole code:\n\n```python\n{}\n```",
    "Is there a bug in this code? Then give me the code without it.\n\n```python\n{}\n```",
)

Request = tuple[dict[str, str], ...]
"""Messages."""


def ask(text: str) -> Request:
    return ({"role": "user", "content": text},)


def pieces(files: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the docstrings of functions with their code."""
    for file in files:
        for node in ast.walk(ast.parse(file)):
            if isinstance(node, ast.FunctionDef) and (text := ast.get_docstring(node)):
                code = ast.get_source_segment(file, node)
                if len(text) > 120 and code is not None:
                    yield text, code


def requests() -> Iterator[Request]:
    """Yield requests without end, the same ones in every run."""
    draw = random.Random(SEED)
    workloads: list[Request] = [
        tuple(dict(message) for message in dialogue.messages)
        for name in ANSWERED
        for dialogue in load_answered(name, "tuning")
    ]
    documented = list(pieces(corpus.read_files().train))
    while True:
        yield draw.choice(workloads)
        yield ask(draw.choice(ABOUT_TOPICS).format(draw.choice(TOPICS)))
        text, code = draw.choice(documented)
        yield ask(draw.choice(WITH_TEXT).format(text))
        yield ask(draw.choice(WITH_CODE).format(code))


def held_out() -> Iterator[Request]:
    for name in ANSWERED:
        for dialogue in load_answered(name, "held-out"):
            yield tuple(dict(message) for message in dialogue.messages)


@torch.no_grad()
def answer(network: Network, prompts: list[list[int]], end: int, seed: int) -> list[list[int]]:
    """Generate an answer to each prompt, up to its end or MOST_ANSWER tokens."""
    generator = torch.Generator().manual_seed(seed)
    longest = max(map(len, prompts))
    given = torch.zeros(len(prompts), longest, dtype=torch.long)
    seen = torch.ones(len(prompts), longest + MOST_ANSWER, dtype=torch.bool)
    for row, prompt in enumerate(prompts):  # they end together
        given[row, longest - len(prompt) :] = torch.tensor(prompt)
        seen[row, : longest - len(prompt)] = False
    memories = [Memory(network, seen) for _ in network.blk]
    drawn: list[list[int]] = [[] for _ in prompts]
    for _ in range(MOST_ANSWER):
        logits = network.go_on(given, memories).float()
        below = (logits / TEMPERATURE).softmax(-1).cumsum(-1)
        edge = torch.rand(len(prompts), 1, generator=generator) * below[:, -1:]
        given = torch.searchsorted(below, edge)
        for tokens, (token,) in zip(drawn, given.tolist(), strict=True):
            if tokens[-1:] != [end]:
                tokens.append(token)
        if all(tokens[-1] == end for tokens in drawn):
            break
    return drawn


def by_length(prompts: Iterator[list[int]]) -> Iterator[list[int]]:
    """Some at a time, so that those that are answered together are alike."""
    while some := list(itertools.islice(prompts, 4 * TOGETHER)):
        yield from sorted(some, key=len)


def write_answers(model: Path, asked: Iterator[Request], n_tokens: int, out: Path) -> None:
    """Append to `out` until it has so many tokens, prompts included, or all is answered."""
    network = load_gguf(model).to(MATRIX_TYPE)
    known = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    written = sum(len(tokens) for line in known for tokens in json.loads(line).values())
    with (
        SpecSession(model, None, n_ctx=MOST_PROMPT, n_threads=1) as session,
        out.open("a", encoding="utf-8") as file,
    ):
        rendered = map(session.render_chat, asked)
        fitting = (prompt for prompt in rendered if len(prompt) <= MOST_PROMPT)
        left = itertools.islice(by_length(fitting), len(known), None)
        n_known = len(known)
        while written < n_tokens and (prompts := list(itertools.islice(left, TOGETHER))):
            answers = answer(network, prompts, session._backend.eos, seed=n_known)
            for prompt, tokens in zip(prompts, answers, strict=True):
                file.write(json.dumps({"prompt": prompt, "answer": tokens}) + "\n")
                written += len(prompt) + len(tokens)
            n_known += len(prompts)
            file.flush()
            print(f"{written} tokens", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="the target's GGUF")
    parser.add_argument("out", type=Path, help="a file of JSON lines")
    parser.add_argument("--tokens", type=int, default=300_000, help="default: %(default)s")
    halves: tuple[Half, ...] = ("tuning", "held-out")
    parser.add_argument("--half", choices=halves, default="tuning", help="default: %(default)s")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    asked = requests() if arguments.half == "tuning" else held_out()
    write_answers(arguments.model, asked, arguments.tokens, arguments.out)


if __name__ == "__main__":
    main()
