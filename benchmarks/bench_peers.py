"""Speed compared with other programs (peers), measured in turns:

    python benchmarks/bench_peers.py [MODEL.gguf] [-md DRAFT.gguf] [-n TOKENS] [--repeat N]
        [-t THREADS] [-ngl N] [--texts N] [-fa on|off] [--llama-cpp DIRECTORY]

llama-cpp-python always takes part, plain and with prompt lookup. With --llama-cpp, llama.cpp's own
llama-server and llama-speculative-simple take part, too. Their sources are in the source
distribution of llama-cpp-python. Building them takes ten minutes on two cores:

    pip download --no-deps --no-binary llama-cpp-python llama-cpp-python==0.3.36
    tar xf llama_cpp_python-0.3.36.tar.gz
    cmake -S llama_cpp_python-0.3.36/vendor/llama.cpp -B llama.cpp -DCMAKE_BUILD_TYPE=Release \\
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_USE_PREBUILT_UI=OFF \\
        -DLLAMA_OPENSSL=OFF
    cmake --build llama.cpp -j 2 --target llama-server llama-speculative-simple
    python benchmarks/bench_peers.py --llama-cpp llama.cpp/bin

(With GCC before 13 on a processor with AMX, the first decode crashes unless
-DCMAKE_C_FLAGS and -DCMAKE_CXX_FLAGS give the compilers -fno-dse -fno-tree-dse.)

All programs use the same files, threads, layers on the GPU (-ngl, default none), prompts, context,
KV memory and attention. They decode greedily and are opened anew in every turn. Prefill does not
count. We and llama-cpp-python are timed by the wall clock from the first token to the last, Python
included. llama.cpp's programs report their own times. A last table shows whole answers, from the
prompt to the last token, by the wall clock. Only these contain the work of a draft model before the
first token. Run nothing else at the same time: schedulers favour young processes. Peers cannot
force a text upon the model, so it continues all prompts freely. From each replayed workload it gets
--texts prompts.

For each workload we are compared with every peer's best setting, chosen afterwards. The first turn
does not count. It warms up, one setting after the other, and drops the settings that are far from
their peer's best. In the turns that count, all remaining settings are open together and take turns
at every text, so changes of the machine's speed affect all of them. Memory has to hold them all. If
free memory is fragmented, the program that opens first gets the small pieces. It then decodes
slower (once by a quarter) if it does not ask for huge pages, as llama-server does not. So another
setting opens first in every turn, and on Linux `echo 1 > /proc/sys/vm/compact_memory` before the
benchmark makes them equal.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from peers import KV_TYPES, PROGRAMS, Job, Prompt, Run, Setting, ours, peers
from specllama import SpecSession
from specllama.bench.arithmetic import median_interval
from specllama.measure.sequences import first_difference
from specllama.session import BUNDLED_MODEL
from specllama.workloads import ANSWERED, WORKLOADS, load, load_answered
from tqdm import tqdm, trange

N_CTX = 2048

NEAR_BEST = 0.9
"""A setting stays after the first turn if it has this part of its peer's best speed."""

Runs = dict[Setting, list[list[Run]]]
"""[setting][turn]: one run for each prompt of a workload."""

Speeds = Callable[[Sequence[Sequence[Run]]], list[float]]
"""Tokens per second of each turn."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Compare speeds with other programs, in turns.")
    parser.add_argument("model", nargs="?", default=str(BUNDLED_MODEL))
    parser.add_argument("-md", "--draft-model", help="draft model, for us and for llama.cpp")
    parser.add_argument("-n", type=int, default=128, help="tokens of each text (128)")
    parser.add_argument("--repeat", type=int, default=5, help="turns (5)")
    parser.add_argument("-t", type=int, default=1, help="threads (1)")
    parser.add_argument("-ngl", type=int, default=0, help="layers on the GPU, -1: all (0)")
    parser.add_argument("--texts", type=int, default=2, help="prompts of code, edit, quote (2)")
    parser.add_argument("-kv", "--kv-type", choices=KV_TYPES, default="f16", help="memory (f16)")
    parser.add_argument(
        "-fa", "--flash-attn", choices=("on", "off"), default="on", help="flash attention (on)"
    )
    parser.add_argument(
        "--peers",
        type=re.compile,
        default=re.compile(""),
        help="only peers whose names match this pattern (all)",
    )
    parser.add_argument("--llama-cpp", type=Path, help="folder of llama.cpp's programs")
    arguments = parser.parse_args(argv)
    if arguments.n < 2:
        parser.error("-n must be at least 2: timing starts at the first token")
    if arguments.flash_attn == "off" and arguments.kv_type != "f16":
        parser.error("-fa off: a quantised KV memory needs flash attention")
    if arguments.llama_cpp is not None:
        for program in PROGRAMS if arguments.draft_model else PROGRAMS[:1]:
            if not (arguments.llama_cpp / program).is_file():
                parser.error(f"{arguments.llama_cpp} does not contain {program}")
    job = Job(
        arguments.model,
        arguments.draft_model,
        arguments.t,
        arguments.ngl,
        N_CTX,
        arguments.kv_type,
        arguments.flash_attn == "on",
        arguments.llama_cpp,
    )
    workloads = prompts(job, arguments.texts)
    us = ours(job)
    them = [one for one in peers(job) if arguments.peers.search(f"{one.peer} {one.name}")]
    first = one_by_one(workloads, [*us, *them], arguments.n)
    good = {name: [*us, *near_best(runs, them)] for name, runs in first.items()}
    runs = take_turns(arguments.repeat, workloads, good, arguments.n)
    for name, of_workload in runs.items():
        report(name, of_workload, first[name], us[0])
    summary("times as fast as", speeds, runs, us, them)
    whole = [one for one in them if tells_whole(one, runs)]
    summary("whole answers, as fast as", whole_speeds, runs, us, whole)


def one_by_one(
    workloads: dict[str, list[Prompt]], settings: Sequence[Setting], n_tokens: int
) -> dict[str, Runs]:
    """Run every workload once, one setting after the other."""
    runs: dict[str, Runs] = {name: {} for name in workloads}
    for setting in tqdm(settings, leave=False):
        with setting.open() as continue_:
            for name, texts in workloads.items():
                runs[name][setting] = [[continue_(text, n_tokens) for text in texts]]
    return runs


def take_turns(
    n_turns: int,
    workloads: dict[str, list[Prompt]],
    settings: dict[str, list[Setting]],
    n_tokens: int,
) -> dict[str, Runs]:
    """Run every workload with its own settings, which take turns at every text."""
    runs: dict[str, Runs] = {name: {one: [] for one in settings[name]} for name in workloads}
    everyone = dict.fromkeys(itertools.chain.from_iterable(settings.values()))
    for turn in trange(n_turns, leave=False):
        with ExitStack() as opened:
            open_ = {one: opened.enter_context(one.open()) for one in in_turn([*everyone], turn)}
            for name, texts in workloads.items():
                for of_one in runs[name].values():
                    of_one.append([])
                for text, setting in itertools.product(texts, in_turn(settings[name], turn)):
                    runs[name][setting][turn].append(open_[setting](text, n_tokens))
    return runs


def in_turn(settings: Sequence[Setting], turn: int) -> list[Setting]:
    """Rotate the settings, so that another one is first in every turn."""
    first = turn % len(settings)
    return [*settings[first:], *settings[:first]]


def near_best(runs: Runs, them: Sequence[Setting]) -> list[Setting]:
    """Return the settings that are about as fast as the best of the same peer."""
    best: dict[str, float] = {}
    for one in them:
        best[one.peer] = max(best.get(one.peer, 0.0), *speeds(runs[one]))
    return [one for one in them if max(speeds(runs[one])) >= NEAR_BEST * best[one.peer]]


def prompts(job: Job, n_texts: int) -> dict[str, list[Prompt]]:
    """Return the prompts of every workload. With a chat template they come from the held-out half
    of the answered workloads."""
    texts = {name: [text] for name, text in WORKLOADS.items()}
    for name in ("code", "edit", "quote"):
        texts[name] = [replay.prompt for replay in load(name)[:n_texts]]
    with SpecSession(job.model, None, n_ctx=64, n_gpu_layers=0) as session:
        if session.has_chat_template:
            return {name: answered(session, name, n_texts) for name in ANSWERED}
        return {
            name: [Prompt(text, session.tokenize(text)) for text in of_workload]
            for name, of_workload in texts.items()
        }


def answered(session: SpecSession, name: str, n_texts: int) -> list[Prompt]:
    """Return the prompts of an answered workload, rendered with the model's chat template."""
    rendered = [
        session.render_chat(one.messages) for one in load_answered(name, "held-out")[:n_texts]
    ]
    return [Prompt(session.detokenize(tokens, special=True), tokens) for tokens in rendered]


def speeds(turns: Sequence[Sequence[Run]]) -> list[float]:
    """Return the tokens per second of each turn, over all prompts."""
    return [sum(run.n_timed for run in turn) / sum(run.seconds for run in turn) for turn in turns]


def whole_speeds(turns: Sequence[Sequence[Run]]) -> list[float]:
    """Return the tokens per second of each turn for whole answers, prompts included."""
    return [
        sum(run.n_timed + 1 for run in turn) / sum(run.whole_seconds or 0.0 for run in turn)
        for turn in turns
    ]


def tells_whole(setting: Setting, runs: dict[str, Runs]) -> bool:
    """Return whether the times of a setting's whole answers are known."""
    turns = itertools.chain.from_iterable(of_one.get(setting, []) for of_one in runs.values())
    return all(run.whole_seconds is not None for turn in turns for run in turn)


def report(workload: str, runs: Runs, first: Runs, plain: Setting) -> None:
    """Print speeds, and ratios to our plain speed. Settings that were dropped after the first turn
    are in brackets."""
    print(f"{workload:<38}tokens/s   ratio   (95 %)")
    for setting in first:
        counted = runs if setting in runs else first
        mine, plainly = counted[setting], counted[plain]
        ratios = [a / b for a, b in zip(speeds(mine), speeds(plainly), strict=True)]
        ratio, low, high = median_interval(ratios)
        speed = statistics.median(speeds(mine))
        line = f"  {f'{setting.peer} {setting.name}':<36}"
        if counted is first:
            print(f"{line}{f'({speed:.1f})':>9}{f'({ratio:.2f}x)':>9}")
            continue
        line += f"{speed:>8.1f}{ratio:>7.2f}x   ({low:.2f}..{high:.2f})"
        print(line + difference(mine[0], plainly[0]))
    print()


def difference(mine: Sequence[Run], plain: Sequence[Run]) -> str:
    """Tell where tokens differ from plain ones; "" if they do not, or if that is unknown."""
    for a, b in zip(mine, plain, strict=True):
        if a.tokens is not None and b.tokens is not None:
            n = min(len(a.tokens), len(b.tokens))  # some include the end token
            differs = first_difference(a.tokens[:n], b.tokens[:n])
            if differs is not None:
                return f"   tokens differ from {differs} on"
    return ""


def summary(
    title: str,
    rate: Speeds,
    runs: dict[str, Runs],
    us: Sequence[Setting],
    them: Sequence[Setting],
) -> None:
    """Print our speed over that of each peer's best setting, by workload."""
    names = list(dict.fromkeys(setting.peer for setting in them))
    for mine in us[1:]:
        head = "".join(f"{name:>8}" for name in (*runs, "mean"))
        print(f"{f'{mine.peer} {mine.name}, {title}':<38}{head}")
        for peer in (*names, "all of them"):
            settings = [one for one in them if peer in (one.peer, "all of them")]
            ratios = [against_best(of_one, mine, settings, rate) for of_one in runs.values()]
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            print(f"  {peer:<36}" + "".join(f"{ratio:>8.2f}" for ratio in (*ratios, mean)))
        print()


def against_best(
    runs: Runs, mine: Setting, settings: Sequence[Setting], rate: Speeds = speeds
) -> float:
    """Return our speed over that of the best setting that has runs: the median over turns."""
    running = [one for one in settings if one in runs]
    best = max(running, key=lambda one: statistics.median(rate(runs[one])))
    return statistics.median(a / b for a, b in zip(rate(runs[mine]), rate(runs[best]), strict=True))


if __name__ == "__main__":
    main()
