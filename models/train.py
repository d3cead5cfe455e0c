"""Train the bundled pair from scratch: corpus, tokenizer, target, draft model, GGUF, figures.

    python models/train.py --out stdlib-pair     about 75 minutes on 2 CPU cores
    python models/train.py --smoke               all steps with tiny models, under two minutes

After an interruption, run it again to continue from the last checkpoint. Needs torch >= 2.9,
tokenizers, gguf and numpy; the package itself does not need torch and tokenizers.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from pathlib import Path

import corpus
import torch
from corpus import VOCABULARY
from evaluate import evaluate
from export import TYPES, export
from network import Config, load
from tokenizers import Tokenizer
from trainer import Recipe, train

TARGET = Recipe(
    name="target",
    config=Config(width=256, layers=6, heads=4, ffn=704, vocabulary=VOCABULARY),
    steps=4191,
    batch=16,
    length=256,
    learning_rate=6e-3,
)
DRAFT = Recipe(
    name="draft",
    config=Config(width=128, layers=2, heads=4, ffn=352, vocabulary=VOCABULARY),
    steps=1231,
    batch=24,
    length=256,
    learning_rate=8e-3,
)


def shrink(recipe: Recipe) -> Recipe:
    """A tiny version of the recipe, for `--smoke`: all steps run, but nothing is learnt."""
    return dataclasses.replace(
        recipe,
        config=Config(width=64, layers=2, heads=2, ffn=96, vocabulary=VOCABULARY),
        steps=8,
        batch=2,
        length=32,
        report_every=2,
        evaluate_every=4,
    )


def make_pair(
    folder: Path, target: Recipe, draft: Recipe, *, compiled: bool, interrupted: bool = False
) -> None:
    """Write tokenizer.json, NAME.pt and NAME-TYPE.gguf into `folder`, and print the figures.

    interrupted: stop each training half-way and resume it, as after a kill.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = corpus.read_files()
    tokenizer = _tokenizer(folder / "tokenizer.json", files.train)
    tokens = corpus.encode(tokenizer, files.train)
    hold_out = corpus.encode(tokenizer, files.hold_out)
    print(
        f"{len(files.train)} files, {len(tokens)} tokens to train; "
        f"{len(files.hold_out)} files, {len(hold_out)} tokens held out",
        flush=True,
    )

    teacher = None
    for recipe in (target, draft):
        stops = [recipe.steps // 2, None] if interrupted else [None]
        for stop_after in stops:
            network = train(
                recipe,
                tokens,
                hold_out,
                folder,
                teacher=teacher,
                compiled=compiled,
                stop_after=stop_after,
            )
        for weight_type in TYPES:
            path = folder / f"{recipe.name}-{weight_type}.gguf"
            export(network, tokenizer, path, weight_type, role=recipe.name)
        teacher = network
    for weight_type in TYPES:
        first, second = (
            load(folder / f"{recipe.name}-{weight_type}.gguf")[0] for recipe in (target, draft)
        )
        print(f"{weight_type}  {evaluate(first, second, hold_out)}", flush=True)


def _tokenizer(path: Path, texts: list[str]) -> Tokenizer:
    if not path.exists():
        corpus.train_tokenizer(texts).save(str(path))
    return Tokenizer.from_file(str(path))


def smoke(folder: Path, *, compiled: bool) -> None:
    """Make a tiny pair twice, once interrupted: both must be equal, bit for bit."""
    # With such small matrices, threads would only wait for each other: minutes on a busy machine.
    torch.set_num_threads(1)
    target, draft = shrink(TARGET), shrink(DRAFT)
    make_pair(folder / "whole", target, draft, compiled=compiled)
    make_pair(folder / "resumed", target, draft, compiled=compiled, interrupted=True)
    for name in ("target", "draft"):
        weights = [
            load(folder / run / f"{name}{suffix}")[0].state_dict()
            for run, suffix in (("whole", ".pt"), ("resumed", ".pt"), ("whole", "-f32.gguf"))
        ]
        for parameter, tensor in weights[0].items():
            same = all(torch.equal(tensor, other[parameter]) for other in weights[1:])
            if not same:
                raise SystemExit(f"{name}: {parameter} differs after resuming or exporting")
    print("smoke: resumed and exported weights are identical")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("stdlib-pair"), help="folder; default: %(default)s"
    )
    parser.add_argument("--smoke", action="store_true", help="a tiny run, in a temporary folder")
    parser.add_argument("--no-compile", action="store_true", help="run without a C++ compiler")
    arguments = parser.parse_args()
    compiled = not arguments.no_compile
    if arguments.smoke:
        with tempfile.TemporaryDirectory() as folder:
            smoke(Path(folder), compiled=compiled)
    else:
        make_pair(arguments.out, TARGET, DRAFT, compiled=compiled)


if __name__ == "__main__":
    main()
