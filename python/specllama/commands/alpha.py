"""`specllama alpha`: finds the best draft model. It measures how many of a drafter's tokens your
model accepts, and the speed to expect from that on this machine.

-md may be a folder: all files in it that fit are compared. The model continues prompts, and at each
token its distribution is compared with those of the drafters. alpha = E[min(p, q)] is the share
that rejection sampling accepts. The expected speed follows from alpha, the measured times of
decodes and the best draft length; it assumes that tokens are accepted independently. For heads and
block drafters, sessions measure the acceptance at each position of drafts of 8 tokens."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from specllama_light.local_models import files
from tqdm import tqdm

from specllama import _core, _files
from specllama.commands import _arguments
from specllama.commands.whole_numbers import whole
from specllama.errors import ArgumentError
from specllama.measure import alpha, alpha_tables, costs, places, speed
from specllama.measure.alpha import Text
from specllama.measure.alpha_tables import Measured
from specllama.measure.approximations import DraftModel, counting
from specllama.measure.logits import LogitsModel
from specllama.measure.sequences import repeated_share
from specllama.model import hub
from specllama.model.bundled import BUNDLED_DRAFT, BUNDLED_MODEL
from specllama.model.found import Found, look
from specllama.model.session_options import FIELDS
from specllama.workloads import HELD_OUT, packaged_prompts

MAX_GAMMA = 8
"""Longest draft, in tokens, that is timed and considered."""

MAX_CONTEXT = 8192
"""Maximum number of tokens of a text, because the logits of all its tokens are kept in memory."""

_TURNS = 5
_SPEED_PROMPTS = 4


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; return the exit code."""
    _check_arguments(arguments)
    target = hub.local_path("-m", arguments.model) if arguments.model else str(BUNDLED_MODEL)
    drafts = _in_types(_drafts(target, arguments), target, arguments.draft_type)
    if arguments.speed and len(drafts) != 1:
        raise ArgumentError(
            f"--speed measures one draft model in one type, not {len(drafts)}; choose one with -md "
            "and --draft-type."
        )
    options = {"n_threads": arguments.n_threads, "n_gpu_layers": arguments.n_gpu_layers}
    measured = Measured()
    n_ctx = arguments.prompt_length + arguments.n_predict
    with LogitsModel(target, n_ctx=n_ctx, **options) as model:
        prompts = _prompts(model, arguments)
        texts = _generate(model, prompts, arguments, measured)
        _compare(model, texts, drafts, arguments, measured, n_ctx, options)
    _measure_places(target, drafts, prompts, arguments, measured, options)
    _time(target, drafts, prompts[0], arguments, measured, options)
    if arguments.speed:
        _measure_speed(target, drafts, prompts, arguments, measured, options)
    if arguments.json:
        print(json.dumps(asdict(measured)))
    else:
        print(alpha_tables.render(measured, Path(target).name, arguments.lenience))
    return 0


def _generate(
    model: LogitsModel,
    prompts: Sequence[Sequence[int]],
    arguments: argparse.Namespace,
    measured: Measured,
) -> dict[float, list[Text]]:
    texts = {}
    for temperature in arguments.temp:
        bar = _bar(prompts, f"generating at T = {temperature:g}")
        texts[temperature] = alpha.generate(model, bar, arguments.n_predict, temperature)
        generated = [text.tokens[text.first :] for text in texts[temperature]]
        measured.n_tokens[temperature] = sum(map(len, generated))
        measured.repeated[temperature] = sum(
            repeated_share(tokens) * len(tokens) for tokens in generated
        ) / sum(map(len, generated))
    return texts


def _compare(
    model: LogitsModel,
    texts: dict[float, list[Text]],
    drafts: dict[str, DraftFile],
    arguments: argparse.Namespace,
    measured: Measured,
    n_ctx: int,
    options: dict[str, Any],
) -> None:
    for temperature, some in texts.items():
        bar = _bar(some, f"counting at T = {temperature:g}")
        measured.alphas += alpha.measure(model, bar, counting(), arguments.lenience)
    for name, draft_file in drafts.items():  # one at a time in memory
        if draft_file.reads_states:
            continue
        with LogitsModel(draft_file.path, n_ctx=n_ctx, **options) as draft:
            for temperature, some in texts.items():
                bar = _bar(some, f"{name} at T = {temperature:g}")
                drafter = [DraftModel(name, draft)]
                measured.alphas += alpha.measure(model, bar, drafter, arguments.lenience)
                bar = _bar(some, f"{name}, rules at T = {temperature:g}")
                measured.rules.append(alpha.compare_rules(model, draft, bar, name))


def _measure_places(
    target: str,
    drafts: dict[str, DraftFile],
    prompts: Sequence[Sequence[int]],
    arguments: argparse.Namespace,
    measured: Measured,
    options: dict[str, Any],
) -> None:
    settings = _settings(arguments)
    for name, file in drafts.items():
        if not file.reads_states:
            continue
        with tqdm(total=len(settings), desc=name, leave=False, delay=0.3, disable=None) as bar:
            measured.places += places.measure(
                target,
                file.path,
                prompts,
                settings,
                name=name,
                at_once=file.at_once,
                longest=MAX_GAMMA,
                n_tokens=arguments.n_predict,
                advance=bar.update,
                **options,
                n_ctx=_session_context(arguments),
            )


def _settings(arguments: argparse.Namespace) -> list[tuple[float, alpha.Rule]]:
    """Return pairs of a temperature and a rule; at temperature 0 the rules do not differ."""
    settings: list[tuple[float, alpha.Rule]] = []
    for temperature in arguments.temp:
        settings.append((temperature, "coupled"))
        if temperature > 0:
            settings.append((temperature, "rejection"))
    return settings


def _time(
    target: str,
    drafts: dict[str, DraftFile],
    prompt: Sequence[int],
    arguments: argparse.Namespace,
    measured: Measured,
    options: dict[str, Any],
) -> None:
    bar = _bar(range(1 + len(drafts)), "timing decodes")
    next(bar)
    options = options | {"n_ctx": _session_context(arguments)}
    measured.v = costs.target_times(target, prompt, MAX_GAMMA + 1, _TURNS, **options)
    for (name, file), _ in zip(drafts.items(), bar, strict=True):
        step = costs.draft_step(target, file.path, prompt, _TURNS, at_once=file.at_once, **options)
        measured.draft_steps[name] = step


def _measure_speed(
    target: str,
    drafts: dict[str, DraftFile],
    prompts: Sequence[Sequence[int]],
    arguments: argparse.Namespace,
    measured: Measured,
    options: dict[str, Any],
) -> None:
    ((name, file),) = drafts.items()
    with tqdm(
        total=(MAX_GAMMA + 1) * arguments.repeat, desc="generating", leave=False, disable=None
    ) as bar:
        measured.speeds = speed.measure(
            target,
            file.path,
            prompts[:_SPEED_PROMPTS],
            _settings(arguments),
            costs.Costs(measured.v, measured.draft_steps[name]),
            n_tokens=arguments.n_predict,
            repeat=arguments.repeat,
            advance=bar.update,
            draft_type="keep",
            **options,
            n_ctx=_session_context(arguments),
        )


def _session_context(arguments: argparse.Namespace) -> int:
    return int(arguments.prompt_length + max(arguments.n_predict, (MAX_GAMMA + 1) * costs.N_TURN))


def _prompts(model: LogitsModel, arguments: argparse.Namespace) -> list[list[int]]:
    """Cut prompts of at most --prompt-length tokens from the given text or the package's."""
    length, count = arguments.prompt_length, arguments.count
    begin = model.tokenize("", add_special=True)
    if arguments.file is None:
        pieces = [
            model.tokenize(prompt, add_special=False)[: length - len(begin)]
            for prompt in packaged_prompts(HELD_OUT)[:count]
        ]
    else:
        tokens = model.tokenize(_files.read_text(arguments.file), add_special=False)
        step = length - len(begin)
        n_pieces = len(tokens) // step
        if n_pieces < 2:
            raise ArgumentError(
                f"{arguments.file} has {len(tokens)} tokens, too few for two prompts of {length}; "
                "give a longer text or a smaller --prompt-length."
            )
        # If there are too many pieces, choose some that are spread over the text.
        chosen = [i * n_pieces // count for i in range(count)] if n_pieces > count else None
        pieces = [tokens[i * step : (i + 1) * step] for i in chosen or range(n_pieces)]
    return [begin + piece for piece in pieces]


@dataclass(frozen=True)
class DraftFile:
    """A file to measure.

    Attributes:
        path: Its path.
        reads_states: Whether it is a head or block drafter, which needs the target's states.
        at_once: Whether a single pass drafts all tokens.
    """

    path: str
    reads_states: bool = False
    at_once: bool = False

    @classmethod
    def of(cls, path: str, file: _core.ModelFile) -> DraftFile:
        """Make it from the header of the file."""
        return cls(path, bool(file.head), file.architecture == "dflash")


def _drafts(target: str, arguments: argparse.Namespace) -> dict[str, DraftFile]:
    """Return the drafts to measure by name; for a folder, all its files that could draft."""
    found = Found(Path(target), _core.read_model_file(target))
    if arguments.draft_model is None:
        bundled = Path(target) == BUNDLED_MODEL
        return {BUNDLED_DRAFT.name: DraftFile(str(BUNDLED_DRAFT))} if bundled else {}
    path = hub.local_path("-md", arguments.draft_model)
    if not os.path.isdir(path):
        draft = _core.read_model_file(path)
        if found.file is None or draft.vocabulary != found.file.vocabulary:
            raise ArgumentError(
                f"{path} cannot draft for {target}: their vocabularies differ; choose another."
            )
        if draft.head:
            _core.check_head(path, target)
        elif not draft.can_draft:
            raise ArgumentError(
                f"{path} cannot draft: its memory cannot be rewound; choose another file."
            )
        return {Path(path).name: DraftFile.of(path, draft)}
    bar = _bar(list(files([Path(path)])), "reading")
    fitting = {
        os.path.relpath(one.path, path): DraftFile.of(str(one.path), one.file)
        for one in map(look, bar)
        if one.file is not None and one.could_draft_for(found)
    }
    if not fitting:
        raise ArgumentError(
            f"No file in {path} could draft for {target}: it must be smaller and have the same "
            "vocabulary."
        )
    return fitting


def _in_types(
    drafts: dict[str, DraftFile], target: str, types: Sequence[str]
) -> dict[str, DraftFile]:
    """Return the drafts by name: heads and block drafters unchanged, and draft models in each of
    the types (the file itself or a copy)."""
    found: dict[str, DraftFile] = {}
    for name, file in drafts.items():
        if file.reads_states:
            found[name] = file
            continue
        for kind in types:
            copy = DraftFile(_core.draft_in_type(file.path, target=target, type=kind))
            if copy not in found.values():
                weights = _core.read_model_file(copy.path).weight_type
                found[name if copy == file else f"{name} as {weights}"] = copy
    return found


def _check_arguments(arguments: argparse.Namespace) -> None:
    if arguments.prompt_length + arguments.n_predict > MAX_CONTEXT:
        raise ArgumentError(f"--prompt-length and -n together must be at most {MAX_CONTEXT}.")
    for temperature in arguments.temp:
        if not 0 <= temperature < float("inf"):
            raise ArgumentError(f"--temp must be finite and not negative, not {temperature}.")
    for one in arguments.lenience:
        if not 0 < one <= 1:
            raise ArgumentError(f"--lenience must be more than 0 and at most 1, not {one}.")
    arguments.temp = list(dict.fromkeys(arguments.temp))
    arguments.lenience = list(dict.fromkeys(arguments.lenience))


def _bar(values: Any, what: str) -> Iterator[Any]:
    return iter(tqdm(values, desc=what, leave=False, delay=0.3, disable=None))


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `alpha` to the command line."""
    parser = commands.add_parser(
        "alpha", help="find the best draft model: how many of its tokens are accepted",
        description=__doc__,
    )  # fmt: skip
    _arguments.add_models(
        parser,
        draft_help="draft model (GGUF file), or a folder: all files in it that fit are compared",
    )
    parser.add_argument(
        "-f", "--file", help="text file to cut prompts from (default: texts of the package)"
    )
    parser.add_argument(
        "-n", "--n-predict", type=whole(1), default=128, help="tokens of each answer (default: 128)"
    )
    parser.add_argument(
        "--count", type=whole(2), default=48, help="maximum number of prompts (default: 48)"
    )
    parser.add_argument(
        "--prompt-length", type=whole(2), default=96, help="tokens of a prompt (default: 96)"
    )
    parser.add_argument(
        "--temp",
        type=float,
        nargs="+",
        default=[0.0, 0.5, 1.0],
        help="temperatures (default: 0 0.5 1)",
    )
    parser.add_argument(
        "--lenience", type=float, nargs="+", default=[1.0], metavar="L",
        help="values of lenience, e.g. 1 0.5 0.3 0.1; below 1 the output changes (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--speed", action="store_true",
        help="also measure the speed with each draft length, and compare it with the expected one",
    )  # fmt: skip
    parser.add_argument("--repeat", type=whole(1), default=3, help="runs of --speed (default: 3)")
    parser.add_argument(
        "--draft-type", nargs="+", choices=FIELDS["draft_type"].choices, default=["keep", "auto"],
        metavar="TYPE",
        help="types of the draft model's weights to compare; keep: as in the file, auto: as a "
        "session chooses (default: keep auto)",
    )  # fmt: skip
    _arguments.add_options(parser, "n_threads", "n_gpu_layers", defaults={"n_gpu_layers": -1})
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)
