"""Train an EAGLE-3 head or a DSpark block drafter: for the bundled target, on the corpus of its
draft model; or for any dense GGUF of the llama architecture, on its own answers (answers.py).

    python models/train_head.py --out stdlib-head    about half an hour on one CPU core
    python models/train_head.py --kind dspark --out stdlib-head
    python models/train_head.py --target MODEL.gguf --texts answers.jsonl --out head
    python models/train_head.py --smoke              a few steps, in half a minute

Reads the target from its GGUF. Writes head.pt and head-q8_0.gguf (for the other kind, dspark.pt and
dspark-q8_0.gguf), which evaluate_head.py measures. After an interruption, run it again to continue
from the last checkpoint. Needs the packages for train.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from dataclasses import dataclass
from pathlib import Path

import corpus
import numpy as np
import torch
from block import BlockDrafter
from corpus import Tokens
from evaluate import WINDOW, windows
from export import export_head
from head import Head
from network import Network, load, load_gguf
from state_reader import StateReader
from torch import Tensor
from trainer import Recipe, fit

TARGET = Path(__file__).parent / "target-q8_0.gguf"

KINDS: dict[str, type[StateReader]] = {"eagle3": Head, "dspark": BlockDrafter}


@dataclass(frozen=True)
class Lesson:
    """The constant data of a training."""

    kind: type[StateReader]
    path: Path
    target: Network
    tokens: Tokens
    hold_out: Tokens
    known: Tensor | None
    """Token ids that the head can draft, in ascending order; None: all."""
    recipe: Recipe


def lesson(kind: type[StateReader], steps: int) -> Lesson:
    """The training for the bundled target."""
    target, tokenizer = load(TARGET)
    files = corpus.read_files()
    tokens, hold_out = (corpus.encode(tokenizer, texts) for texts in (files.train, files.hold_out))
    chosen = recipe(kind, target, steps, 8, 6e-3)
    return Lesson(kind, TARGET, target, tokens, hold_out, None, chosen)


def lesson_of(
    kind: type[StateReader], path: Path, texts: Path, steps: int, most_known: int
) -> Lesson:
    """The training for another target. One in 25 of its texts is held out."""
    target, answers = load_gguf(path), corpus.read_answers(texts)
    tokens = np.concatenate([one for i, one in enumerate(answers) if i % 25])
    hold_out = np.concatenate(answers[::25])
    # Among tokens that the texts do not have, the first ones: BPE makes frequent tokens first.
    counts = np.bincount(tokens, minlength=target.config.vocabulary)
    often = np.argsort(-counts, kind="stable")[:most_known]
    known = torch.from_numpy(np.sort(often))
    chosen = recipe(kind, target, steps, 4, 3e-3)
    return Lesson(kind, path, target, tokens, hold_out, known, chosen)


def recipe(
    kind: type[StateReader], target: Network, steps: int, batch: int, learning_rate: float
) -> Recipe:
    return Recipe(
        name=kind.name,
        config=target.config,
        steps=steps,
        batch=batch,
        length=256,
        learning_rate=learning_rate,
        report_every=25,
        evaluate_every=200,
    )


def shrink(whole: Lesson) -> Lesson:
    """A tiny version of the training, for `--smoke`: all steps run, but nothing is learnt."""
    recipe = dataclasses.replace(
        whole.recipe, steps=8, batch=2, length=32, report_every=2, evaluate_every=4
    )
    return dataclasses.replace(whole, hold_out=whole.hold_out[:1000], recipe=recipe)


def make_head(
    folder: Path, lesson: Lesson, *, compiled: bool, stop_after: int | None = None
) -> StateReader:
    """Train, or resume training, in `folder`, and return the drafter, ready to evaluate."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    head = lesson.kind(lesson.recipe.config, lesson.known)
    head.begin_with(lesson.target.requires_grad_(False))

    def loss(window: Tensor) -> Tensor:
        return head.loss(lesson.target, window)

    @torch.no_grad()
    def hold_out_loss() -> float:
        several = [
            head.judge(lesson.target, inputs).item()
            for inputs, _ in windows(lesson.hold_out[:10000], WINDOW)
            if inputs.shape[1] >= 16  # the last window may be too short for a draft
        ]
        return sum(several) / len(several)

    finished = folder / f"{head.name}.pt"
    if finished.exists():
        head.load_state_dict(torch.load(finished, weights_only=True)["sd"])
        return head.eval()
    fit(
        lesson.recipe,
        head,
        loss,
        lesson.tokens,
        folder,
        hold_out_loss=hold_out_loss,
        compiled=compiled,
        stop_after=stop_after,
    )
    return head.eval()


def smoke(folder: Path, whole: Lesson, *, compiled: bool) -> None:
    """Train for a few steps twice, once interrupted: both must be equal, bit for bit."""
    small = shrink(whole)
    first = make_head(folder / "whole", small, compiled=compiled)
    make_head(folder / "resumed", small, compiled=compiled, stop_after=small.recipe.steps // 2)
    resumed = make_head(folder / "resumed", small, compiled=compiled)
    path = folder / "head-f32.gguf"
    export_head(first, small.path, path, "f32")
    exported = small.kind.load(path, small.target.config)
    for name, weight in first.state_dict().items():
        if not all(torch.equal(weight, other.state_dict()[name]) for other in (resumed, exported)):
            raise SystemExit(f"{name} differs after resuming or exporting")
    print("smoke: resumed and exported weights are identical")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", choices=KINDS, default="eagle3", help="default: %(default)s")
    parser.add_argument(
        "--out", type=Path, default=Path("stdlib-head"), help="folder; default: %(default)s"
    )
    parser.add_argument("--target", type=Path, help="GGUF; default: the bundled one")
    parser.add_argument("--texts", type=Path, help="file of answers.py, with --target")
    parser.add_argument(
        "--known",
        type=int,
        metavar="TOKENS",
        default=8192,
        help="most tokens that a head for --target can draft, the most frequent ones of its texts; "
        "default: %(default)s",
    )
    parser.add_argument("--steps", type=int, default=1250, help="default: %(default)s")
    parser.add_argument("--smoke", action="store_true", help="a few steps, in a temporary folder")
    parser.add_argument("--no-compile", action="store_true", help="run without a C++ compiler")
    arguments = parser.parse_args()
    if min(arguments.steps, arguments.known) < 1:
        parser.error("--steps and --known must be at least 1")
    if (arguments.target is None) != (arguments.texts is None):
        parser.error("--target and --texts go together")
    torch.set_num_threads(1)
    kind = KINDS[arguments.kind]
    if arguments.target is None:
        whole = lesson(kind, arguments.steps)
    else:
        known = arguments.known
        whole = lesson_of(kind, arguments.target, arguments.texts, arguments.steps, known)
    compiled = not arguments.no_compile
    if arguments.smoke:
        with tempfile.TemporaryDirectory() as folder:
            smoke(Path(folder), whole, compiled=compiled)
        return
    head = make_head(arguments.out, whole, compiled=compiled)
    export_head(head, whole.path, arguments.out / f"{kind.name}-q8_0.gguf", "q8_0")


if __name__ == "__main__":
    main()
