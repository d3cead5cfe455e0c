"""The rounds of a trace as columns that show tokens and time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from specllama._core import RoundTrace
from specllama.formats.traced_token import TracedToken

STYLE = """
.specllama-trace .strip { overflow-x: auto; margin-top: .8em }
.specllama-trace .strip svg { display: block }
.specllama-trace .strip path { stroke: var(--ink); stroke-width: .5; fill: var(--own) }
.specllama-trace .strip path.match { fill: var(--match) }
.specllama-trace .strip path.corpus { fill: var(--corpus) }
.specllama-trace .strip path.history { fill: var(--history) }
.specllama-trace .strip path.ngram { fill: var(--ngram) }
.specllama-trace .strip path.grammar, .specllama-trace .strip path.forced { fill: var(--grammar) }
.specllama-trace .strip path.model { fill: var(--model) }
.specllama-trace .strip path.other { fill: var(--other) }
.specllama-trace .strip path.rejected { fill: none; stroke: var(--no); stroke-width: 1 }
"""

_CAPTION = (
    "A column for each round; its width shows its time. From below: accepted tokens, the model's "
    "own token, rejected tokens (hollow)."
)
_HEIGHT = 5  # pixels of a token
_WIDTH = 9  # pixels of a round with the mean time
_WIDEST, _NARROWEST = 10 * _WIDTH, 2  # so that one long pause does not fill the screen


def strip(rounds: Sequence[tuple[RoundTrace, Sequence[TracedToken]]]) -> str:
    """Return the columns as an element with SVG inside; "" if there are no rounds.

    Args:
        rounds: The rounds, in order, each with its tokens, drafted ones first.
    """
    if not rounds:
        return ""
    seconds = [one.draft_seconds + one.decode_seconds for one, _ in rounds]
    scale = _WIDTH * len(rounds) / (sum(seconds) or 1.0)
    height = _HEIGHT * max(len(tokens) for _, tokens in rounds) + 1
    boxes: defaultdict[str, str] = defaultdict(str)
    x = 0.5
    for (_, tokens), time in zip(rounds, seconds, strict=True):
        width = min(max(scale * time, _NARROWEST), _WIDEST)
        y = height - 0.5
        for token in sorted(tokens, key=_is_rejected):
            y -= _HEIGHT
            boxes[_name(token)] += f"M{x:.1f} {y:.1f}h{width:.1f}v{_HEIGHT}h-{width:.1f}z"
        x += width + 1
    paths = "".join(f'<path class="{name}" d="{d}"/>' for name, d in boxes.items())
    return (
        f'<div class="strip"><svg role="img" aria-label="{_CAPTION}" width="{x:.0f}" '
        f'height="{height}">{paths}</svg></div>\n<p class="caption">{_CAPTION}</p>\n'
    )


def _is_rejected(token: TracedToken) -> bool:
    return token.kind == "rejected"


def _name(token: TracedToken) -> str:
    return token.name if token.kind in ("accepted", "rejected", "forced", "cut") else "own"
