"""How many answers differ from those of plain decoding, here and with llama-server:

    python benchmarks/bench_same.py MODEL.gguf [-md DRAFT.gguf] [-t THREADS] [-n TOKENS]
        [--prompts N] [--llama-cpp DIRECTORY]

Every contestant answers the same prompts greedily with default options, without a prompt cache. Its
answers are compared with its own plain decoding. Our drafts come from n-grams, with planned lengths
and with a fixed length of 4, and from a draft model. With --llama-cpp (the folder of llama-server;
bench_peers.py tells how to build it) llama-server takes part, with its n-grams and with drafts of 4
tokens from the draft model.

There are two sets of prompts: the N shortest of the benchmark's conversations, and N long ones of
600 to 1000 tokens, each made of several conversations. The table shows how many answers differ and,
after "from", the median of the first differing token. Nothing is timed, so other programs may run
at the same time. They change how much the planner drafts.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from specllama import SpecSession
from specllama.bench.llama_server import model_flags, serving
from specllama.measure.sequences import first_difference
from specllama.workloads import ANSWERED, load_answered
from tqdm import tqdm

N_CTX = 2048
LONG = range(600, 1001)
"""Tokens of a long prompt."""

Answer = Callable[[list[int], int], list[int]]
"""Continues a prompt by at most so many tokens."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("-md", help="GGUF file of a draft model")
    parser.add_argument("-t", type=int, default=2, help="threads (2)")
    parser.add_argument("-n", type=int, default=128, help="tokens of an answer at most (128)")
    parser.add_argument("--prompts", type=int, default=20, help="prompts of each set (20)")
    parser.add_argument("--llama-cpp", type=Path, help="folder of llama-server")
    arguments = parser.parse_args(argv)
    with SpecSession(arguments.model, None, n_ctx=N_CTX, n_threads=arguments.t) as session:
        sets = {
            "short": short_prompts(session, arguments.prompts),
            "long": long_prompts(session, arguments.prompts),
        }
    for name, prompts in sets.items():
        sizes = sorted(map(len, prompts))
        print(f"{name}: {len(prompts)} prompts of {sizes[0]} to {sizes[-1]} tokens", flush=True)
    programs = [ours(arguments.model, arguments.md, arguments.t)]
    if arguments.llama_cpp:
        program = arguments.llama_cpp / "llama-server"
        programs.append(llama_server(program, arguments.model, arguments.md, arguments.t))
    for contestants in programs:
        plain: list[list[int]] = []
        for name, opened in contestants.items():
            with opened as answer:
                answers = [
                    answer(prompt, arguments.n)
                    for prompt in tqdm([*itertools.chain(*sets.values())], name, leave=False)
                ]
            if not plain:
                plain = answers
                continue
            pairs = iter(zip(plain, answers, strict=True))
            counts = {
                kind: [first_difference(*pair) for pair in itertools.islice(pairs, len(prompts))]
                for kind, prompts in sets.items()
            }
            print(f"{name:38}" + "  ".join(map(described, counts, counts.values())), flush=True)


def short_prompts(session: SpecSession, n: int) -> list[list[int]]:
    """Return the token ids of the `n` shortest conversations, in the chat template."""
    texts = [one for kind in ANSWERED for one in load_answered(kind)]
    return sorted((session.render_chat(one.messages) for one in texts), key=len)[:n]


def long_prompts(session: SpecSession, n: int) -> list[list[int]]:
    """Return the token ids of `n` conversations of `LONG` tokens. Each is one message, made of two
    or three random messages that contain documents."""
    kinds = ("documents", "summarise", "rename", "extract")
    texts = [str(one.messages[-1]["content"]) for kind in kinds for one in load_answered(kind)]
    rng = random.Random(1)
    found: list[list[int]] = []
    while len(found) < n:
        message = "\n\n".join(rng.sample(texts, rng.choice((2, 3))))
        tokens = session.render_chat([{"role": "user", "content": message}])
        if len(tokens) in LONG:
            found.append(tokens)
    return found


def described(kind: str, differences: list[int | None]) -> str:
    """Tell how many answers differ, and from which token on."""
    found = [one for one in differences if one is not None]
    start = f" from {statistics.median(found):g}" if found else ""
    return f"{kind} {len(found)} of {len(differences)}{start}"


def ours(model: str, draft: str | None, n_threads: int) -> dict[str, contextmanager[Answer]]:
    """Return our sessions by name, the plain one first."""

    @contextmanager
    def session(**options: object) -> Iterator[Answer]:
        with SpecSession(model, n_ctx=N_CTX, n_threads=n_threads, **options) as opened:
            yield lambda prompt, n: opened.generate(prompt, max_tokens=n, cache_prompt=False).tokens

    contestants = {
        "plain": session(draft=None),
        "n-grams": session(draft="ngram"),
        "n-grams, drafts of 4": session(draft="ngram", spec_length=4),
    }
    if draft:
        contestants["draft model"] = session(draft=draft)
    return contestants


def llama_server(
    program: Path, model: str, draft: str | None, n_threads: int
) -> dict[str, contextmanager[Answer]]:
    """Return llama-server's settings by name, the plain one first."""

    @contextmanager
    def server(*flags: str) -> Iterator[Answer]:
        common = model_flags(model, n_threads=n_threads, n_ctx=N_CTX, kv_type="f16")
        with serving(program, [*common, *flags], n_slots=1) as opened:
            yield lambda prompt, n: opened.complete(prompt, n, cache_prompt=False).tokens

    contestants = {
        "llama-server, plain": server(),
        "llama-server, ngram-simple": server("--spec-type", "ngram-simple"),
    }
    if draft:
        contestants["llama-server, draft-simple, 4"] = server(
            "--spec-type", "draft-simple", "--spec-draft-n-max", "4", "-md", draft
        )
    return contestants


if __name__ == "__main__":
    main()
