"""Speed against draft length, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from specllama.bench.contestants import FIXED
from specllama.bench.measuring import Result, Score

_WIDTH, _HEIGHT = 680, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 490, 28, 286
_LENGTHS = (0, *FIXED, 32, 64)
_MOST_TICKS = 8

# Each drafter has its own shape, filled if the draft length is fixed, hollow if it is planned.
# Colours only repeat the information of shapes and dashes.
_SHAPES = {
    "ngram": '<circle r="5"/>',
    "match": '<path d="M0 -6 L6 5 L-6 5 Z"/>',
    "model": '<path d="M-4.5 -4.5 h9 v9 h-9 Z"/>',
    "cascade": '<path d="M0 -7 L7 0 L0 7 L-7 0 Z"/>',
}
_DASHES = {"ngram": "none", "model": "7 3"}
_DOTS = "1 4"


@dataclass(frozen=True)
class _Scale:
    """Maps draft lengths and speeds to coordinates in the picture.

    Attributes:
        longest: Draft length at the right edge.
        highest: Speed at the upper edge.
    """

    longest: float
    highest: float

    def x(self, length: float) -> float:
        # Logarithmic, shifted so that 0 is included.
        width = _RIGHT - _LEFT
        return _LEFT + width * math.log2(1 + length) / math.log2(1 + self.longest)

    def y(self, speed: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * speed / self.highest


def speeds(result: Result) -> str:
    """Return a picture of the speeds of a workload's contestants, as multiples of plain decoding,
    against the tokens that they draft. Fixed lengths are lines, planned ones are points at the mean
    number of tokens drafted per round, and Theorem 3.8 is a dotted line. Bars are confidence
    intervals."""
    drafting = [score for score in result.scores if score.drafter is not None]
    scale = _Scale(
        longest=max([FIXED[-1], *(score.drafted_per_round for score in drafting)]),
        highest=1.08 * max([1.0, *(max(score.high, score.promised or 0) for score in drafting)]),
    )
    title = escape(f"Speed against draft length: {result.workload} ({result.kind})")
    parts = [*_frame(scale), *_legend(drafting)]
    for who in _DASHES:
        parts += _lines(scale, who, _fixed(drafting, who))
    for score in drafting:
        parts.append(_point(scale, score))
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}">'
        f"<title>{title}</title>{''.join(parts)}</svg>"
    )


def _fixed(scores: Iterable[Score], who: str) -> list[Score]:
    """Return the scores of a drafter with fixed lengths, by increasing length."""
    return sorted(
        (one for one in scores if one.drafter == who and one.spec_length is not None), key=_length
    )


def _length(score: Score) -> float:
    return score.drafted_per_round if score.spec_length is None else score.spec_length


def _frame(scale: _Scale) -> Iterable[str]:
    step = next(
        step
        for power in range(10)
        for step in (0.25 * 10**power, 0.5 * 10**power, 10**power)
        if scale.highest / step <= _MOST_TICKS
    )
    for i in range(int(scale.highest / step) + 1):
        y = scale.y(i * step)
        yield f'<path class="grid" d="M{_LEFT} {y:.1f} H{_RIGHT}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{i * step:g}x</text>'
    for length in _LENGTHS:
        if length <= scale.longest:
            x = scale.x(length)
            yield f'<path class="grid" d="M{x:.1f} {_BOTTOM} v5"/>'
            yield f'<text x="{x:.1f}" y="{_BOTTOM + 19}" text-anchor="middle">{length}</text>'
    yield f'<path class="plain" d="M{_LEFT} {scale.y(1):.1f} H{_RIGHT}"/>'
    middle = (_LEFT + _RIGHT) / 2
    yield f'<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle">tokens per draft</text>'
    yield '<text x="4" y="14">times as fast as plain decoding</text>'


def _lines(scale: _Scale, who: str, scores: Sequence[Score]) -> Iterable[str]:
    for name, dashes, points in (
        (who, _DASHES[who], [(_length(one), one.ratio) for one in scores]),
        ("theorem", _DOTS, [(_length(one), one.promised) for one in scores if one.promised]),
    ):
        if points:
            path = " L".join(f"{scale.x(x):.1f} {scale.y(y):.1f}" for x, y in points)
            yield f'<path class="line {name}" stroke-dasharray="{dashes}" d="M{path}"/>'


def _point(scale: _Scale, score: Score) -> str:
    x, low, high = scale.x(_length(score)), scale.y(score.low), scale.y(score.high)
    title = (
        f"{score.contestant}: {score.ratio:.2f}x ({score.low:.2f} to {score.high:.2f}), "
        f"{score.drafted_per_round:.1f} tokens drafted per round"
    )
    return (
        f'<g class="{score.drafter}"><title>{escape(title)}</title>'
        f'<path class="bar" d="M{x - 3:.1f} {high:.1f} h6 m-3 0 V{low:.1f} m-3 0 h6"/>'
        f"{_marker(x, scale.y(score.ratio), score)}</g>"
    )


def _marker(x: float, y: float, score: Score) -> str:
    kind = "planned" if score.spec_length is None else "fixed"
    shape = _SHAPES[score.drafter or ""]
    return f'<g class="{kind}" transform="translate({x:.1f} {y:.1f})">{shape}</g>'


def _legend(scores: Sequence[Score]) -> Iterable[str]:
    x, y = _RIGHT + 24, _TOP + 8
    yield f'<path class="plain" d="M{x - 12} {y} h24"/>{_label(x, y, "plain decoding")}'
    planned = [one for one in scores if one.spec_length is None]
    for score, kind in (
        *((one, "planned") for one in planned),
        *((fixed[0], "fixed") for who in _DASHES if (fixed := _fixed(scores, who))),
    ):
        y += 22
        if kind == "fixed":
            yield _sample(x, y, score.drafter or "", _DASHES[score.drafter or ""])
        yield f'<g class="{score.drafter}">{_marker(x, y, score)}</g>'
        yield _label(x, y, f"{score.drafter}, {kind}")
    if any(one.promised for one in _fixed(scores, "model")):
        y += 22
        yield f"{_sample(x, y, 'theorem', _DOTS)}{_label(x, y, 'model, Theorem 3.8')}"


def _sample(x: float, y: float, name: str, dashes: str) -> str:
    return f'<path class="line {name}" stroke-dasharray="{dashes}" d="M{x - 12} {y} h24"/>'


def _label(x: float, y: float, text: str) -> str:
    return f'<text x="{x + 20}" y="{y + 4}">{text}</text>'
