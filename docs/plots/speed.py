"""The plot of docs/measured/summary.md: `python docs/plots/speed.py` (needs matplotlib).

The numbers are those of the page's own tables."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams |= {"svg.hashsalt": "specllama", "font.size": 9, "axes.spines.top": False,
                        "axes.spines.right": False, "figure.figsize": (6.4, 3.2)}  # fmt: skip
from matplotlib import pyplot as plt  # noqa: E402

HERE = Path(__file__).parent
PAGE = HERE.parent / "measured" / "summary.md"


def rows(page: str, head: str) -> list[tuple[str, list[float]]]:
    """Return the rows of the table whose first line begins with `head`."""
    _, _, after = page.partition(f"\n{head}")
    lines = after.split("\n\n")[0].splitlines()[2:]
    cells = ([cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines)
    return [(name, [float(one) for one in numbers]) for name, *numbers in cells]


def main() -> None:
    """Draw the first table: a group of bars for each kind of text, a bar for each machine."""
    page = PAGE.read_text()
    head = "| text |"
    machines = re.findall(r"[^|]+", page.partition(f"\n{head}")[2].splitlines()[0])
    table = rows(page, head)
    width = 0.8 / len(machines)
    for i, machine in enumerate(machines):
        at = [row + (i - (len(machines) - 1) / 2) * width for row in range(len(table))]
        plt.bar(at, [numbers[i] for _, numbers in table], width, label=machine.strip())
    plt.axhline(1, color="0.5", linewidth=0.8)
    plt.xticks(range(len(table)), [name for name, _ in table], rotation=30, ha="right")
    plt.ylabel("multiple of plain decoding")
    plt.legend(frameon=False, fontsize=8)
    plt.tight_layout()
    plt.savefig(HERE / "speed.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
