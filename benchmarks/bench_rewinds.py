"""How much of a conversation is decoded again after an earlier message is changed, on a model whose
memory cannot be truncated.

    python benchmarks/bench_rewinds.py --ctx-checkpoints 0 2 8 32

A conversation of some 4000 tokens grows turn by turn. Then a client sends it with another text in
place of its last message. Then it does so with the third and with the tenth message from the end,
without the messages after the changed one.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import hybrid_shape
from specllama import SpecSession

N_MESSAGES, LEAST, MOST = 41, 20, 180
"""Messages, and tokens of each: 100 on average."""

BACK = (1, 3, 10)


def message(rng: random.Random) -> list[int]:
    n = rng.randint(LEAST, MOST)
    return [*(rng.randrange(3, hybrid_shape.N_VOCAB - 1) for _ in range(n)), hybrid_shape.EOS]


def decoded(session: SpecSession, messages: Sequence[list[int]]) -> tuple[int, int, float]:
    """Answer a conversation with one token. Return the number of the prompt's tokens, how many of
    them were decoded, and the processor seconds."""
    begin = time.process_time()
    prompt = [1, *(token for one in messages for token in one), 3, 4, 5]
    stats = session.generate(prompt, max_tokens=1).stats
    n = stats.prompt_tokens
    return n, n - stats.reused_tokens, time.process_time() - begin


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-m", "--model", type=Path, help="GGUF (default: a random hybrid one)")
    parser.add_argument("--ctx-checkpoints", type=int, nargs="+", default=[2, 32])
    parser.add_argument("-t", "--threads", type=int, default=1)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        model = arguments.model or hybrid_shape.write(Path(folder) / "hybrid.gguf")
        for n_checkpoints in arguments.ctx_checkpoints:
            measure(model, n_checkpoints, arguments.threads)


def measure(model: Path, n_checkpoints: int, n_threads: int) -> None:
    rng = random.Random(1)
    messages = [message(rng) for _ in range(N_MESSAGES)]
    with SpecSession(
        model, None, n_ctx=8192, n_threads=n_threads, ctx_checkpoints=n_checkpoints
    ) as session:
        n_all = sum(decoded(session, messages[: n + 1])[1] for n in range(0, N_MESSAGES, 2))
        print(f"{n_checkpoints} checkpoints; {n_all} tokens decoded while the conversation grew")
        for back in BACK:
            kept = messages[: N_MESSAGES - back]
            n, n_decoded, seconds = decoded(session, [*kept, message(rng)])
            n_new = n - 1 - sum(map(len, kept))
            print(
                f"  edited {back} back: {n} tokens, {n_new} of them new; decoded again "
                f"{n_decoded - n_new}; {seconds:.1f} s of a processor"
            )
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"  {most} MiB of main memory at most", flush=True)


if __name__ == "__main__":
    main()
