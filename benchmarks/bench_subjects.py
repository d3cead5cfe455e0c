"""Computed gain from the memory of earlier requests in a session that changes its subject.

    python benchmarks/bench_subjects.py [--half first|second] [--seeds N] [--unrelated]
        [--curves FILE.json]

The answers of tests/data/answers.jsonl come one subject after the other. There are eight kinds of
conversations, in a random order for each seed, so the session changes its subject seven times. The
planner observes decode times with 5 % noise. Every answer is drafted by n-grams, and by n-grams
plus the memory of all answers before it. A line is a machine. Speeds are multiples of the speed
without memory, at the costs of eight machines:

    all         all answers
    worst       the subject that gains least, over all seeds
    unlucky     the same in the worst seed
    chance      `unlucky` between two sessions without memory and with different noise

With --unrelated the memory holds only answers of other subjects. At the end: how often tokens of
the memory are right, by the length of the match, where the request itself has no match as long.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from answers import Answer, answers
from bench_planner import CURVES, Costs, Machine, read_costs
from specllama._core import History, Source
from specllama._core.plan import Evidence, HistoryFollower, NGramFollower, PlannedRound
from specllama.simulate import MAX_DRAFT

Draft = list[tuple[int, Evidence]]


@dataclass(frozen=True)
class Offer:
    """The drafts at a position.

    Attributes:
        own, history: Evidence of each token drafted by n-grams, and by the memory.
        n_own, n_history: How many tokens from the first on are right.
        n_shared: How many first tokens of the memory's draft count as the n-gram drafter's.
    """

    own: list[Evidence]
    history: list[Evidence]
    n_own: int
    n_history: int
    n_shared: int


def offers(answer: Answer, history: History) -> list[Offer]:
    """Return the drafts at each position of an answer, from its second token on."""
    own, past = NGramFollower(), HistoryFollower(history, [*answer.prompt, answer.tokens[0]])
    own.append_batch([*answer.prompt, answer.tokens[0]])
    found = []
    text = answer.tokens[1:]
    for i, token in enumerate(text):
        room = min(MAX_DRAFT, len(text) - 1 - i)
        mine, other = own.draft(room), past.draft(room)
        n_shared = shared(other, mine)
        evidence = [known for _, known in (*mine[:n_shared], *other[n_shared:])]
        if n_shared == len(other):
            other, evidence, n_shared = [], [], 0
        found.append(
            Offer([one for _, one in mine], evidence, right(mine, text[i:]),
                  right(other, text[i:]), n_shared)
        )  # fmt: skip
        own.append(token)
        past.append_batch([token])
    return found


def shared(draft: Draft, other: Draft) -> int:
    """Do what the core's `share_evidence` does (csrc/draft/sampled_draft.h)."""
    if not draft or not other:
        return 0
    first = other[0][1]
    if first.source != Source.match or first.length < draft[0][1].length:
        return 0
    return right(draft, [token for token, _ in other])


def right(draft: Draft, text: Sequence[int]) -> int:
    n = 0
    while n < min(len(draft), len(text)) and draft[n][0] == text[n]:
        n += 1
    return n


def time_of(offered: Sequence[Offer], n_prompt: int, machine: Machine, *, memory: bool) -> float:
    """Return the time of an answer, in plain decodes."""
    planner = machine.planner
    regime = planner.begin(0.0, n_prompt)
    time, i = 0.0, 0
    while i < len(offered):
        one = offered[i]
        room = min(MAX_DRAFT, len(offered) - 1 - i)
        planned = PlannedRound(regime, n_prompt + i, max_draft=room)
        planned.add(one.own[:room])
        rights = [one.n_own]
        if memory:
            planned.add(one.history[:room], n_known=min(one.n_shared, room))
            rights.append(one.n_history)
        planner.choose([planned])
        choice = planned.choice
        accepted = min(choice.n_draft, rights[choice.candidate]) if choice.n_draft else 0
        time += machine.decode([planned], n_prompt + i)
        planned.on_result(accepted, [min(n, accepted + 1) for n in rights])
        planner.learn(planned)
        i += accepted + 1
    return time


def sessions(
    texts: Sequence[Answer], seeds: int, *, unrelated: bool
) -> list[list[tuple[str, int, list[Offer]]]]:
    """Return sessions: the subject of each answer, the number of tokens before it, its drafts."""
    found = []
    for seed in range(seeds):
        for model in ("1.5B", "0.5B"):
            mine = [one for one in texts if one.model == model]
            kinds = np.random.default_rng(seed).permutation(sorted({one.kind for one in mine}))
            session, history = [], History(1 << 20)
            for kind in kinds:
                of_kind = [one for one in mine if one.kind == kind]
                for one in of_kind:
                    session.append((str(kind), len(one.prompt) + 1, offers(one, history)))
                    if not unrelated:
                        history.append([*one.prompt, *one.tokens])
                for one in of_kind if unrelated else ():
                    history.append([*one.prompt, *one.tokens])
            found.append(session)
    return found


def ratios(
    costs: Costs, all_sessions: Sequence[list[tuple[str, int, list[Offer]]]]
) -> list[dict[str, list[float]]]:
    """Return each session's times by subject: without memory, with memory, and without memory with
    other noise."""
    found = []
    for seed, session in enumerate(all_sessions):
        times: dict[str, list[float]] = defaultdict(lambda: [0.0] * 3)
        machines = (Machine(costs, seed), Machine(costs, seed), Machine(costs, 1000 + seed))
        for kind, n_prompt, offered in session:
            for i, machine in enumerate(machines):
                times[kind][i] += time_of(offered, n_prompt, machine, memory=i == 1)
        found.append(dict(times))
    return found


def show_rates(all_sessions: Sequence[list[tuple[str, int, list[Offer]]]]) -> None:
    seen: Counter[int] = Counter()
    n_right: Counter[int] = Counter()
    for session in all_sessions:
        for _, _, offered in session:
            for one in offered:
                if one.history and not one.n_shared:
                    length = min(one.history[0].length, 33)
                    seen[length] += 1
                    n_right[length] += one.n_history > 0
    print("\nP(next token right | length of the match), and how often such a match was there")
    for low, high in ((1, 1), (2, 3), (4, 4), (5, 6), (7, 10), (11, 16), (17, 32), (33, 33)):
        n = sum(seen[i] for i in range(low, high + 1))
        rate = sum(n_right[i] for i in range(low, high + 1)) / max(n, 1)
        print(f"{low:>4} to {high:<4}{rate:>8.3f}{n:>8}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("first", "second"))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--unrelated", action="store_true")
    parser.add_argument("--curves", type=Path, default=CURVES)
    arguments = parser.parse_args()
    all_sessions = sessions(
        list(answers(arguments.half)), arguments.seeds, unrelated=arguments.unrelated
    )
    print(f"{'':12}{'all':>8}{'worst':>8}  {'':12}{'unlucky':>8}{'chance':>8}")
    for name, costs in read_costs(arguments.curves, told=True).items():
        by_session = ratios(costs, all_sessions)
        total = np.sum([list(times.values()) for times in by_session], axis=(0, 1))
        by_kind = {
            kind: np.sum([times[kind] for times in by_session], axis=0) for kind in by_session[0]
        }
        worst = min(by_kind, key=lambda kind: by_kind[kind][0] / by_kind[kind][1])
        unlucky, chance = (
            min(one[0] / one[i] for times in by_session for one in times.values()) for i in (1, 2)
        )
        worst_ratio = by_kind[worst][0] / by_kind[worst][1]
        print(
            f"{name:12}{total[0] / total[1]:>8.3f}{worst_ratio:>8.3f}  {worst:12}{unlucky:>8.3f}"
            f"{chance:>8.3f}",
            flush=True,
        )
    show_rates(all_sessions)


if __name__ == "__main__":
    main()
