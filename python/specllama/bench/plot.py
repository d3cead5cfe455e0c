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

# Who drafts has a shape of its own, filled where the length is fixed, hollow where it is planned.
# Colours only repeat what shapes and dashes say.
_SHAPES = {
    "ngram": '<circle r="5"/>',
    "match": '<path d="M0 -6 L6 5 L-6 5 Z"/>',
    "model": '<path d="M-4.5 -4.5 h9 v9 h-9 Z"/>',
    "cascade": '<path d="M0 -7 L7 0 L0 7 L-7 0 Z"/>',
}
_DASHES = {"ngram": "none", "model": "7 3"}


@dataclass(frozen=True)
class _Scale:
    """Where numbers lie in the picture.

    Attributes:
        longest: Draft length at the right edge.
        highest: Speed at the upper edge.
    """

    longest: float
    highest: float

    def x(self, length: float) -> float:
        # Half of the interest is in drafts of none to four tokens.
        width = _RIGHT - _LEFT
        return _LEFT + width * math.log2(1 + length) / math.log2(1 + self.longest)

    def y(self, speed: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * speed / self.highest


def speeds(result: Result) -> str:
    """Return a picture of the speeds of a workload's contestants, as multiples of plain decoding,
    against the tokens they draft: those with a fixed length as lines, the planned ones as points at
    the mean length of a draft, Theorem 3.8 as a dotted line. Bars are confidence intervals."""
    drafting = [score for score in result.scores if score.contestant != "plain"]
    scale = _Scale(
        longest=max([FIXED[-1], *(score.drafted_per_round for score in drafting)]),
        highest=1.08 * max([1.0, *(max(score.high, score.promised or 0) for score in drafting)]),
    )
    title = escape(f"Speed against draft length: {result.workload} ({result.kind})")
    parts = [*_frame(scale), *_legend(drafting)]
    for who in _DASHES:
        parts += _fixed(scale, who, [one for one in drafting if _fixed_of(one) == who])
    for score in drafting:
        if _fixed_of(score) is None:
            parts.append(_point(scale, score, score.contestant, score.drafted_per_round))
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}">'
        f"<title>{title}</title>{''.join(parts)}</svg>"
    )


def _fixed_of(score: Score) -> str | None:
    """Who drafts with a fixed length; None if it is planned."""
    who, _, length = score.contestant.partition("-")
    return who if length else None


def _length_of(score: Score) -> int:
    return int(score.contestant.partition("-")[2])


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


def _fixed(scale: _Scale, who: str, scores: Sequence[Score]) -> Iterable[str]:
    scores = sorted(scores, key=_length_of)
    promised = [
        (_length_of(score), score.promised) for score in scores if score.promised is not None
    ]
    for name, dashes, points in (
        (who, _DASHES[who], [(_length_of(score), score.ratio) for score in scores]),
        ("theorem", "1 4", promised),
    ):
        if points:
            path = " L".join(f"{scale.x(x):.1f} {scale.y(y):.1f}" for x, y in points)
            yield f'<path class="line {name}" stroke-dasharray="{dashes}" d="M{path}"/>'
    for score in scores:
        yield _point(scale, score, who, _length_of(score))


def _point(scale: _Scale, score: Score, who: str, length: float) -> str:
    x, low, high = scale.x(length), scale.y(score.low), scale.y(score.high)
    title = (
        f"{score.contestant}: {score.ratio:.2f}x ({score.low:.2f} to {score.high:.2f}), "
        f"{score.drafted_per_round:.1f} tokens drafted per round"
    )
    return (
        f'<g class="{who}"><title>{escape(title)}</title>'
        f'<path class="bar" d="M{x - 3:.1f} {high:.1f} h6 m-3 0 V{low:.1f} m-3 0 h6"/>'
        f"{_marker(x, scale.y(score.ratio), who, planned=_fixed_of(score) is None)}</g>"
    )


def _marker(x: float, y: float, who: str, *, planned: bool) -> str:
    kind = "planned" if planned else "fixed"
    return f'<g class="{kind}" transform="translate({x:.1f} {y:.1f})">{_SHAPES[who]}</g>'


def _legend(scores: Sequence[Score]) -> Iterable[str]:
    x, y = _RIGHT + 24, _TOP + 8
    yield f'<path class="plain" d="M{x - 12} {y} h24"/>{_label(x, y, "plain decoding")}'
    for score in scores:
        if _fixed_of(score) is None:
            y += 22
            who = score.contestant
            marker = _marker(x, y, who, planned=True)
            yield f'<g class="{who}">{marker}</g>{_label(x, y, f"{who}, planned")}'
    for who, dashes in _DASHES.items():
        if any(_fixed_of(score) == who for score in scores):
            y += 22
            line = f'<path class="line {who}" stroke-dasharray="{dashes}" d="M{x - 12} {y} h24"/>'
            marker = _marker(x, y, who, planned=False)
            yield f'{line}<g class="{who}">{marker}</g>{_label(x, y, f"{who}, fixed")}'
    if any(_fixed_of(score) and score.promised is not None for score in scores):
        y += 22
        yield f'<path class="line theorem" stroke-dasharray="1 4" d="M{x - 12} {y} h24"/>'
        yield _label(x, y, "model, Theorem 3.8")


def _label(x: float, y: float, text: str) -> str:
    return f'<text x="{x + 20}" y="{y + 4}">{text}</text>'
