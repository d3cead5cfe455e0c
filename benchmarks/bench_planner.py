"""Computed gain of the planner on real answers, at the costs of eight machines.

    python benchmarks/bench_planner.py [--half first|second] [--seeds N] [--step S] [--tokens N]
        [--promises] [--both] [--curves FILE.json] [--untold]

The answers of tests/data/answers.jsonl are taken in a random order for each seed. The planner
observes decode times with 5 % noise. A line is a machine of tests/data/curves.json. Speeds are
multiples of plain decoding: the geometric mean, then the 5th percentile of the answers:

    session     one session gives all answers, one after another
    first 64    the same, only the first 64 tokens of each answer
    alone       each answer in a new session
    eight       eight at once, as multiples of plain decoding one after another
    model       with a draft model in addition to the n-grams; one step of it takes S (0.1) of a
                plain decode, and it has to process the prompts, too
    without     the same answers with n-grams only
    beside      with a draft model, as multiples of n-grams only

N is the number of tokens that each answer is cut to (all). With --promises a line is a machine and
a range of draft lengths in `session`: the number of such drafts, the expected and actual tokens of
a round with one, and what it saved, in plain decodes. With --both a line is a range of the draft
model's probability, where the n-gram drafter has a token, too: how often both have the same token
and it is right, and how often each is right where their tokens differ.

With --curves tests/data/gpu.json, a decode also costs more if the decode before had another number
of tokens. With --untold the planner is not told about this extra cost, and takes the times as they
are.

To see the gain of a part of the planner: remove it, build, and run again."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from answers import Answer, answers
from numpy.typing import NDArray
from specllama._core.plan import Evidence, NGramFollower, PlannedRound, Planner, TextRegime
from specllama.simulate import MAX_DRAFT, Drafts, read_curves
from tree_rounds import catching_up

CURVES = Path(__file__).parents[1] / "tests" / "data" / "curves.json"
SECOND = 0.05  # seconds of a plain decode, as the planner sees it
NOISE = 0.05
AT_ONCE = 8
LENGTHS = ((1, 3), (4, 8), (9, 19), (20, 64))
SURE = ("below 0.2", "0.2 to 0.4", "0.4 to 0.6", "0.6 to 0.8", "above 0.8")


@dataclass(frozen=True)
class Costs:
    """Costs of decodes, in plain decodes.

    Attributes:
        curve: v(n).
        changes: Extra costs of the first and the second decode after n changed.
        told: Whether the planner is told about `changes`.
    """

    curve: NDArray[np.float64]
    changes: tuple[float, float] = (0.0, 0.0)
    told: bool = True


class Machine:
    """A machine, and a planner that observes its costs."""

    def __init__(self, costs: Costs, seed: int) -> None:
        self.costs = costs
        self.curve = costs.curve
        self.rng = np.random.default_rng(seed)
        self.planner = Planner()
        self.last, self.n_same = 1, 3
        for _ in range(10):
            if n := self.planner.cost.next_probe(MAX_DRAFT + 1):
                self.planner.cost.observe(n, 0, self.heard(self.curve[n - 1]))
        if costs.told:
            self.planner.cost.set_width_switch(SECOND * sum(costs.changes))

    def heard(self, cost: float) -> float:
        return SECOND * cost * float(np.exp(NOISE * self.rng.normal()))

    def decode(self, planned_rounds: Sequence[PlannedRound], n_context: int) -> float:
        n = (
            sum(1 + planned.choice.n_draft for planned in planned_rounds)
            + planned_rounds[0].choice.n_padding
        )
        cost = float(self.curve[min(n, len(self.curve)) - 1])
        self.n_same = self.n_same + 1 if n == self.last else 1
        self.last = n
        if self.n_same <= len(self.costs.changes):
            cost += self.costs.changes[self.n_same - 1]
        self.planner.observe_decode(n, n_context, self.heard(cost))
        return cost


def room(drafts: Drafts, i: int) -> int:
    """Return how many tokens may be drafted: the target itself adds the last token of a round."""
    return min(MAX_DRAFT, len(drafts) - 1 - i)


def offered(drafts: Drafts, regime: TextRegime, i: int, **options: Any) -> PlannedRound:
    planned = PlannedRound(regime, drafts.n_prompt + i, max_draft=room(drafts, i), **options)
    planned.add(drafts.evidence[i][: room(drafts, i)])
    return planned


def right(drafts: Drafts, i: int, accepted: int) -> int:
    return min(int(drafts.right[i]), accepted + 1, room(drafts, i))


@dataclass(frozen=True)
class DraftRound:
    """
    Attributes:
        length: Drafted tokens.
        expected: Tokens that the planner expected from the round.
        came: Tokens that the round gave.
        time: Its time, in plain decodes.
    """

    length: int
    expected: float
    came: int
    time: float


def time_of(
    answer: Answer, machine: Machine, rounds: list[DraftRound] | None = None
) -> list[float]:
    """Return the time of each token, in plain decodes. Append rounds with drafts to `rounds`."""
    drafts, planner = answer.drafts, machine.planner
    regime = planner.begin(0.0, drafts.n_prompt)
    times: list[float] = []
    time, i = 0.0, 0
    while i < len(drafts):
        planned = offered(drafts, regime, i)
        planner.choose([planned])
        accepted = min(planned.choice.n_draft, int(drafts.right[i]))
        took = machine.decode([planned], drafts.n_prompt + i)
        time += took
        if planned.choice.n_draft and rounds is not None:
            rounds.append(
                DraftRound(planned.choice.n_draft, planned.choice.tokens, accepted + 1, took)
            )
        planned.on_result(accepted, [right(drafts, i, accepted)])
        planner.learn(planned)
        times += [time] * (accepted + 1)
        i += accepted + 1
    return times


def time_with_model(answer: Answer, machine: Machine, step: float) -> float:
    drafts, planner = answer.drafts, machine.planner
    regime = planner.begin(0.0, drafts.n_prompt)
    time, i, seen = 0.0, 0, -drafts.n_prompt
    while i < len(drafts):
        n_first = max(i - seen, 0)
        lengths = {"n_unprocessed": n_first, "n_left": answer.most - 1 - i}
        planned = offered(drafts, regime, i, **lengths)
        planner.choose([planned])
        planned.n_to_check = planner.n_to_check(planned)
        draft: list[Evidence] = []
        spent = 0.0
        while len(draft) < room(drafts, i) and planner.should_continue(
            planned, draft, SECOND * spent
        ):
            at = i + len(draft)
            n_to_check = 0 if draft else planned.n_to_check
            n_unprocessed = max(at - seen, 0) + n_to_check
            taken = step * (1 + catching_up(machine.curve, n_unprocessed))
            planner.observe_drafting(1, 1, n_unprocessed, drafts.n_prompt + i, machine.heard(taken))
            spent += taken
            # Where the n-gram token is right, the model's token equals it if it is right, too.
            n_same = min(
                n_to_check, int(drafts.right[i]), answer.model_run[at], room(drafts, i) - 1
            )
            seen = at + n_same + 1
            draft += answer.model_evidence[at:seen]
        n_right = min(len(draft), answer.model_run[i])
        n_own = len(draft)
        if n_own and min(n_right, int(drafts.right[i])) >= n_own:
            draft += drafts.evidence[i][n_own : room(drafts, i)]  # the copy's tokens after these
            n_right = int(drafts.right[i])
        rights = [int(drafts.right[i]), n_right]
        without_draft_model = planned.choice if spent else None
        planned = offered(
            drafts,
            regime,
            i,
            spent=SECOND * spent,
            without_draft_model=without_draft_model,
            **lengths,
        )
        planned.add(draft, n_rest=len(draft) - n_own, required=n_own > 0)
        planner.choose([planned])
        choice = planned.choice
        accepted = min(choice.n_draft, rights[choice.candidate]) if choice.n_draft else 0
        time += spent + machine.decode([planned], drafts.n_prompt + i)
        planned.on_result(
            accepted, [right(drafts, i, accepted), min(len(draft), n_right, accepted + 1)]
        )
        planner.learn(planned)
        i += accepted + 1
    return time


def time_at_once(all_answers: Sequence[Answer], machine: Machine) -> float:
    planner = machine.planner
    waiting = [answer.drafts for answer in all_answers]
    running: list[tuple[Drafts, TextRegime, int]] = []
    time = 0.0
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            drafts = waiting.pop(0)
            running.append((drafts, planner.begin(0.0, drafts.n_prompt), 0))
        planned_rounds = [offered(drafts, regime, i) for drafts, regime, i in running]
        planner.choose(planned_rounds)
        time += machine.decode(planned_rounds, 200)
        later = []
        for (drafts, regime, i), planned in zip(running, planned_rounds, strict=True):
            accepted = min(planned.choice.n_draft, int(drafts.right[i]))
            planned.on_result(accepted, [right(drafts, i, accepted)])
            planner.learn(planned)
            if i + accepted + 1 < len(drafts):
                later.append((drafts, regime, i + accepted + 1))
        running = later
    return time


def speeds(
    costs: Costs, texts: Sequence[Answer], seeds: int, step: float
) -> dict[str, list[float]]:
    """Return the speed of every answer, by column."""
    found: dict[str, list[float]] = defaultdict(list)
    for seed in range(seeds):
        for model in ("1.5B", "0.5B"):
            mine = [one for one in texts if one.model == model]
            order = [mine[i] for i in np.random.default_rng(seed).permutation(len(mine))]
            session, beside = Machine(costs, seed), Machine(costs, seed)
            for one in order:
                times = time_of(one, session)
                found["session"].append(len(times) / times[-1])
                found["first 64"].append(len(times[:64]) / times[:64][-1])
                alone = time_of(one, Machine(costs, seed))
                found["alone"].append(len(alone) / alone[-1])
                if one.draft:
                    time = time_with_model(one, beside, step)
                    found["model"].append(len(one.drafts) / time)
                    found["without"].append(len(times) / times[-1])
                    found["beside"].append(times[-1] / time)
            n_tokens = sum(len(one.drafts) for one in order)
            found["eight"].append(n_tokens / time_at_once(order, Machine(costs, seed)))
    return found


def promises(costs: Costs, texts: Sequence[Answer], seeds: int) -> list[DraftRound]:
    """Return all rounds with drafts of `session`."""
    rounds: list[DraftRound] = []
    for seed in range(seeds):
        for model in ("1.5B", "0.5B"):
            mine = [one for one in texts if one.model == model]
            machine = Machine(costs, seed)
            for i in np.random.default_rng(seed).permutation(len(mine)):
                time_of(mine[i], machine, rounds)
    return rounds


def show_both(texts: Sequence[Answer]) -> None:
    """Compare the n-grams' tokens with the draft model's, by the draft model's probability."""
    alike: dict[int, list[bool]] = defaultdict(list)
    other: dict[int, list[tuple[bool, bool]]] = defaultdict(list)
    for one in texts:
        if not one.draft:
            continue
        follower = NGramFollower()
        follower.append_batch([*one.prompt, one.tokens[0]])
        for token, own, sure in zip(one.tokens[1:], one.draft[1:], one.sure[1:], strict=True):
            class_of = min(int(len(SURE) * sure), len(SURE) - 1)
            for drafted, _ in follower.draft(1):
                if drafted == own:
                    alike[class_of].append(own == token)
                else:
                    other[class_of].append((drafted == token, own == token))
            follower.append(token)
    for class_of, sure in enumerate(SURE):
        copied, own = np.mean(other[class_of], 0)
        print(
            f"{sure:12}{len(alike[class_of]):>6} alike{np.mean(alike[class_of]):>6.2f} right"
            f"{len(other[class_of]):>6} not{copied:>6.2f} n-grams right{own:>6.2f} model right"
        )


def show_promises(name: str, rounds: Sequence[DraftRound]) -> None:
    for low, high in LENGTHS:
        these = [one for one in rounds if low <= one.length <= high]
        if not these:
            continue
        expected, came, time = np.mean([(one.expected, one.came, one.time) for one in these], 0)
        print(
            f"{name:12}{f'{low} to {high}':>10}{len(these):>7} rounds{expected:>8.2f} expected"
            f"{came:>8.2f} came{came - time:>8.2f} saved"
        )


def read_costs(path: Path, *, told: bool) -> dict[str, Costs]:
    """Return the costs of the machines in a file, by name."""
    content = json.loads(path.read_text())
    changes = {name: (first, second) for name, first, second in content.get("changes", [])}
    costs = {}
    for name, curve in read_curves(path).items():
        first, second = changes.get(name, (0.0, 0.0))
        plain = content[name]["1"]
        costs[name] = Costs(curve, (first / plain, second / plain), told)
    return costs


def cut(answer: Answer, n: int) -> Answer:
    """Cut an answer to n tokens, as if n had been its limit."""
    return replace(
        answer, tokens=answer.tokens[:n], draft=answer.draft[:n], sure=answer.sure[:n], most=n
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("first", "second"))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--step", type=float, default=0.1)
    parser.add_argument("--tokens", type=int, default=Answer.most)
    parser.add_argument("--promises", action="store_true")
    parser.add_argument("--both", action="store_true")
    parser.add_argument("--curves", type=Path, default=CURVES)
    parser.add_argument("--untold", action="store_true")
    arguments = parser.parse_args()
    texts = [cut(one, arguments.tokens) for one in answers(arguments.half)]
    if arguments.both:
        show_both(texts)
        return
    machines = read_costs(arguments.curves, told=not arguments.untold)
    if arguments.promises:
        for name, costs in machines.items():
            show_promises(name, promises(costs, texts, arguments.seeds))
        return
    columns = ("session", "first 64", "alone", "eight", "model", "without", "beside")
    print(f"{'':12}" + "".join(f"{name:>16}" for name in columns))
    means: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, costs in machines.items():
        found = speeds(costs, texts, arguments.seeds, arguments.step)
        for column in columns:
            log = np.log(found[column])
            means[column].append((float(log.mean()), float(np.percentile(log, 5))))
        print(f"{name:12}" + "".join(_cell(*means[column][-1]) for column in columns))
    overall = [_cell(*np.mean(means[column], axis=0)) for column in columns]
    print(f"{'mean':12}" + "".join(overall))


def _cell(mean: float, low: float) -> str:
    return f"{np.exp(mean):10.3f}{np.exp(low):6.2f}"


if __name__ == "__main__":
    main()
