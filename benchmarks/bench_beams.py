"""The gain of speculation for beam search, by wall-clock time, with answers that repeat much of the
question.

    python benchmarks/bench_beams.py -m model.gguf

Searches run in turns: plain, with planned and with fixed lengths. For each number of beams it
prints the median of all texts' ratios to the plain search, tokens per second, decodes per token,
and the drafted and accepted tokens of each drafter; at the end, the times of decodes of several
tokens.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

from specllama import SpecSession
from specllama._core import Stats
from specllama.workloads.answered import load_answered

CONTESTANTS: dict[str, dict[str, Any]] = {
    "plain": {"draft": None},
    "auto": {"draft": "ngram"},
    "4 steps": {"draft": "ngram", "spec_length": 4},
    "8 steps": {"draft": "ngram", "spec_length": 8},
}


def seconds(stats: Stats) -> float:
    """Return the seconds per token after the prompt."""
    spent = stats.seconds
    # The prefill gives the first token.
    return (spent.verify + spent.choose + spent.draft) / (stats.generated_tokens - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-n", "--max-tokens", type=int, default=64)
    parser.add_argument("-t", "--threads", type=int, default=0)
    parser.add_argument("--workload", default="rename", help="answered (%(default)s)")
    parser.add_argument("--texts", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=2, help="turns (%(default)s)")
    parser.add_argument("--beams", type=int, nargs="+", default=[2, 4])
    arguments = parser.parse_args()
    sessions = {
        name: SpecSession(
            arguments.model, n_ctx=4096, n_threads=arguments.threads or None, **options
        )
        for name, options in CONTESTANTS.items()
    }
    texts = [
        sessions["plain"].render_chat(one.messages)
        for one in load_answered(arguments.workload)[: arguments.texts]
    ]
    for n_beams in arguments.beams:
        runs: dict[str, list[Stats]] = {name: [] for name in sessions}
        for turn in range(arguments.repeat):
            for text in texts:
                for name in [*sessions] if turn % 2 else [*sessions][::-1]:
                    beams = sessions[name].beam_search(
                        text, n_beams, max_tokens=arguments.max_tokens
                    )
                    runs[name].append(beams[0].stats)
        plain = [seconds(stats) for stats in runs["plain"]]
        for name, of in runs.items():
            ratios = [p / seconds(stats) for p, stats in zip(plain, of, strict=True)]
            decodes = sum(stats.rounds for stats in of) / sum(
                stats.generated_tokens for stats in of
            )
            drafted = {
                drafter: tuple(sum(stats.by_drafter[drafter][i] for stats in of) for i in (0, 1))
                for drafter in of[0].by_drafter
            }
            print(
                f"{n_beams} beams  {name:8}{1 / statistics.median(map(seconds, of)):7.2f} tokens/s,"
                f" {statistics.median(ratios):.2f} of plain ({min(ratios):.2f} to"
                f" {max(ratios):.2f}), {decodes:.2f} decodes per token ",
                {drafter: n for drafter, n in drafted.items() if n[0]},
                flush=True,
            )
    one = sessions["auto"].generate(texts[0], max_tokens=1).stats.decode_seconds
    points = enumerate(one[:32], 1)
    print("ms of a decode:", ", ".join(f"{n}: {1e3 * v:.1f}" for n, v in points if v > 0))
    for session in sessions.values():
        session.close()


if __name__ == "__main__":
    main()
