"""Training: a recipe, a loop for target and draft model, and checkpoints for resuming."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import corpus
import evaluate
import torch
from corpus import Tokens
from network import Config, Network, fast_matrices, load_weights, save, write_atomically
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW, Muon, Optimizer

WARM_UP = 60
"""Steps over which the learning rate rises from 0; at most a tenth of all steps."""

LABEL_SHARE = 0.2
"""Weight of the next token of the corpus, in addition to the teacher's distribution, in
distillation."""


@dataclass(frozen=True)
class Recipe:
    """The sizes and parameters of a training. A step is a batch of `batch` x `length` tokens."""

    name: str
    config: Config
    steps: int
    batch: int
    length: int
    learning_rate: float
    report_every: int = 100
    """Steps between progress lines; a checkpoint is written with each."""
    evaluate_every: int = 1000
    """Steps between hold-out losses."""


def train(
    recipe: Recipe,
    tokens: Tokens,
    hold_out: Tokens,
    folder: Path,
    *,
    teacher: Network | None = None,
    compiled: bool = True,
    stop_after: int | None = None,
) -> Network:
    """Train, or resume training, and return the network, ready to evaluate.

    teacher: distil from it (draft model), or None to learn only from the corpus (target).
    compiled: let torch.compile fuse the step; about twice as fast, but needs a C++ compiler.
    stop_after: stop with a checkpoint after this step, as after a kill.
    Writes `folder/NAME.pt` at the end and `folder/NAME.resume.pt` during the training. A finished
    network is only read. An unfinished one continues from its checkpoint, with the same result as
    without an interruption.
    """
    finished = folder / f"{recipe.name}.pt"
    if finished.exists():
        return load_weights(finished)
    torch.manual_seed(0)
    network = Network(recipe.config)
    fit(
        recipe,
        network,
        _loss_function(network, teacher),
        tokens,
        folder,
        hold_out_loss=lambda: evaluate.loss(network, hold_out),
        compiled=compiled,
        stop_after=stop_after,
    )
    return network.eval()


def fit(
    recipe: Recipe,
    network: nn.Module,
    step_loss: Callable[[Tensor], Tensor],
    tokens: Tokens,
    folder: Path,
    *,
    hold_out_loss: Callable[[], float],
    compiled: bool = True,
    stop_after: int | None = None,
) -> None:
    """The loop of `train`, for a network and a loss of windows (batch, length + 1)."""
    torch.use_deterministic_algorithms(True)  # else the embedding's gradient is summed in any order
    optimizers = make_optimizers(network, recipe.learning_rate)
    checkpoint = Checkpoint(folder / f"{recipe.name}.resume.pt", recipe, network, optimizers)
    first = checkpoint.restore()
    if compiled:
        step_loss = torch.compile(step_loss)
    progress = Progress(recipe, first, len(tokens))
    for step in range(first, recipe.steps):
        factor = schedule(step, recipe.steps)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = recipe.learning_rate * factor
            optimizer.zero_grad()
        window = torch.from_numpy(corpus.batch(tokens, recipe.batch, recipe.length, 0, step))
        loss = step_loss(window)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(network.parameters(), max_norm=1.0)
        for optimizer in optimizers:
            optimizer.step()

        done = step + 1
        progress.add(loss.item())
        if done % recipe.report_every == 0 or done in (recipe.steps, stop_after):
            progress.report(done)
            checkpoint.write(done)
        if done % recipe.evaluate_every == 0 or done == recipe.steps:
            print(f"{recipe.name}  hold-out loss {hold_out_loss():.3f}", flush=True)
        if done == stop_after:
            return

    save(recipe.config, network, folder / f"{recipe.name}.pt")
    checkpoint.path.unlink()


_OUTSIDE_LAYERS = ("token_embd", "markov_w")


def make_optimizers(network: nn.Module, learning_rate: float) -> list[Optimizer]:
    """Muon for the layers' matrices; AdamW for the embedding, a block drafter's matrices by token,
    and the norms, as Muon requires."""
    matrices: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad:
            continue
        in_layer = parameter.dim() == 2 and not name.startswith(_OUTSIDE_LAYERS)
        (matrices if in_layer else rest).append(parameter)
    return [
        Muon(
            matrices,
            lr=learning_rate,
            momentum=0.95,
            weight_decay=0.05,
            adjust_lr_fn="match_rms_adamw",  # updates as large as AdamW's: one rate for both
        ),
        AdamW(rest, lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def schedule(step: int, steps: int) -> float:
    """Learning-rate factor: warm-up, constant until the middle, then linear down to 0.02."""
    done = step / steps
    decay = 1.0 if done < 0.5 else max(0.02, (1 - done) / 0.5)
    return min(1.0, (step + 1) / min(WARM_UP, steps / 10)) * decay


def _loss_function(network: Network, teacher: Network | None) -> Callable[[Tensor], Tensor]:
    """Windows (batch, length + 1) to the mean loss."""

    def logits(model: Network, inputs: Tensor) -> Tensor:
        with fast_matrices():
            output: Tensor = model(inputs)
        return output.float().flatten(0, 1)

    def loss(window: Tensor) -> Tensor:
        inputs, targets = window[:, :-1], window[:, 1:].flatten()
        student = logits(network, inputs)
        corpus_loss = functional.cross_entropy(student, targets)
        if teacher is None:
            return corpus_loss
        with torch.no_grad():
            wanted = logits(teacher, inputs).log_softmax(-1)
        learnt = student.log_softmax(-1)
        divergence = functional.kl_div(learnt, wanted, log_target=True, reduction="batchmean")
        return LABEL_SHARE * corpus_loss + divergence

    return loss


@dataclass(frozen=True)
class Checkpoint:
    """All state of a step except the draws from the corpus, which depend only on the step."""

    path: Path
    recipe: Recipe
    network: nn.Module
    optimizers: list[Optimizer]

    def write(self, step: int) -> None:
        state: dict[str, Any] = {
            "recipe": asdict(self.recipe),
            "step": step,
            "network": self.network.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }
        write_atomically(state, self.path)

    def restore(self) -> int:
        """Load the checkpoint and return the completed steps; 0 if there is none."""
        if not self.path.exists():
            return 0
        state = torch.load(self.path, weights_only=True)
        if state["recipe"] != asdict(self.recipe):
            raise SystemExit(f"{self.path} was written by another recipe; delete it or use --out")
        self.network.load_state_dict(state["network"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        step: int = state["step"]
        print(f"{self.recipe.name}  resumed after step {step}", flush=True)
        return step


class Progress:
    """One line per report: mean loss and speed since the last report, epochs and time left."""

    def __init__(self, recipe: Recipe, first: int, corpus_tokens: int) -> None:
        self.recipe = recipe
        self.reported = first
        self.corpus_tokens = corpus_tokens
        self.losses: list[float] = []
        self.since = time.monotonic()

    def add(self, loss: float) -> None:
        self.losses.append(loss)

    def report(self, done: int) -> None:
        recipe = self.recipe
        per_step = recipe.batch * recipe.length
        now = time.monotonic()
        seconds = (now - self.since) / (done - self.reported)
        print(
            f"{recipe.name}  step {done}/{recipe.steps}"
            f"  loss {sum(self.losses) / len(self.losses):.3f}"
            f"  {per_step / seconds:.0f} tokens/s"
            f"  epoch {done * per_step / self.corpus_tokens:.2f}"
            f"  {seconds * (recipe.steps - done) / 60:.1f} min left",
            flush=True,
        )
        self.losses.clear()
        self.reported, self.since = done, now
