"""The plots of docs/internals/planner.md: `python docs/plots/planner.py` (needs matplotlib).

Times are those of tests/data/curves.json, measured or approximated as it says there. No model, no
clock."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from specllama._core import Source
from specllama._core.plan import Evidence, PlannedRound, Planner
from specllama.simulate import MAX_DRAFT, calibrated_planner, read_curves

matplotlib.use("svg")
matplotlib.rcParams |= {"svg.hashsalt": "specllama", "font.size": 9, "axes.spines.top": False,
                        "axes.spines.right": False, "figure.figsize": (6.4, 2.8)}  # fmt: skip
from matplotlib import pyplot as plt  # noqa: E402

HERE = Path(__file__).parent
CURVES = read_curves(HERE.parents[1] / "tests" / "data" / "curves.json")
NAMES = {
    "bf16": "bf16, two CPU cores",
    "q4_k_m": "Q4_K_M, two CPU cores",
    "metal_like": "Apple GPU, approximately",
    "cuda_like": "CUDA, approximately",
}
SECOND = 0.05  # of a decode of one token; any would do


def save(name: str) -> None:
    plt.tight_layout()
    plt.savefig(HERE / f"{name}.svg", metadata={"Date": None})
    plt.close()


def costs() -> None:
    """v(n) on four machines."""
    n = np.arange(1, 34)
    for name, label in NAMES.items():
        plt.plot(n, CURVES[name][n - 1], label=label)
    plt.plot(n, n, color="0.7", linestyle=":", label="as many decodes of one")
    plt.ylim(0, 12)
    plt.xlabel("tokens in a decode, n")
    plt.ylabel("v(n) / v(1)")
    plt.legend(frameon=False, fontsize=8)
    save("costs")


def lengths() -> None:
    """Expected speed by draft length."""
    g = np.arange(MAX_DRAFT + 1)
    _, axes = plt.subplots(1, 2, sharey=True)
    for axis, name in zip(axes, ("q4_k_m", "metal_like"), strict=True):
        for rate in (0.95, 0.8, 0.5):
            speed = np.cumsum(rate**g) / CURVES[name][g]
            (line,) = axis.plot(g[:33], speed[:33], label=f"{rate:.0%} right")
            best = int(np.argmax(speed[:33]))
            axis.plot(best, speed[best], "o", color=line.get_color())
        axis.axhline(1, color="0.7", linestyle=":")
        axis.set_title(NAMES[name], fontsize=9)
        axis.set_xlabel("draft tokens, g")
    axes[0].set_ylabel("S(g), x plain")
    axes[0].legend(frameon=False, fontsize=8)
    save("lengths")


def regimes() -> None:
    """A text that copies, then does not, then copies: what the planner drafts."""
    rng = np.random.default_rng(4)
    rate = np.concatenate([np.full(60, 0.1), np.full(120, 0.97), np.full(120, 0.1)] * 2)
    right = rng.random(len(rate)) < rate
    draft = [Evidence(Source.ngram, 4, 1.0)] * MAX_DRAFT
    for name in ("q4_k_m", "cuda_like"):
        planner = calibrated_planner(CURVES[name])
        position, drafted = _drafted(planner, right, draft, CURVES[name])
        plt.step(position, drafted, where="post", linewidth=0.9, label=NAMES[name])
    for start in np.flatnonzero(np.diff(rate) > 0) + 1:
        plt.axvspan(start, start + 120, color="0.92")
    plt.xlabel("token of the text (grey: 97 % of the drafts' tokens are right; else 10 %)")
    plt.ylabel("draft tokens")
    plt.legend(frameon=False, fontsize=8)
    save("regimes")


def _drafted(
    planner: Planner, right: np.ndarray, draft: list[Evidence], curve: np.ndarray
) -> tuple[list[int], list[int]]:
    """Where rounds began, and how many tokens were drafted there."""
    regime = planner.begin()
    positions, lengths, i = [], [], 0
    while i < len(right):
        wrong = np.flatnonzero(~right[i : i + MAX_DRAFT])
        n_right = int(wrong[0]) if len(wrong) else len(right[i : i + MAX_DRAFT])
        planned = PlannedRound(regime, i)
        planned.add(draft)
        planner.choose([planned])
        n = planned.choice.n_draft
        positions.append(i)
        lengths.append(n)
        planner.observe_decode(n + 1, i, SECOND * float(curve[n]))
        accepted = min(n, n_right)
        planned.on_result(accepted, [min(n_right, accepted + 1)])
        planner.learn(planned)
        i += accepted + 1
    return positions, lengths


if __name__ == "__main__":
    costs()
    lengths()
    regimes()
