"""The figures of `specllama alpha`, and the tables that it prints: Markdown, aligned so that it is
readable as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from specllama import theory
from specllama.measure.alpha import Alpha, Rules
from specllama.measure.places import Places
from specllama.measure.speed import Speed
from specllama.theory import DecodeTimes


@dataclass
class Measured:
    """All measurements of the command.

    Attributes:
        repeated: For each temperature, the share of 4-grams of the generated text that occurred
            before in the same text.
        n_tokens: For each temperature, the number of generated tokens.
        v: Decode times of the model, seconds.
        draft_steps: d of each draft model, head or block drafter by its name, seconds.
        alphas: For every drafter, temperature and lenience.
        rules: For every draft model and temperature.
        places: For every head or block drafter, temperature and rule.
        speeds: For every setting and draft length.
    """

    repeated: dict[float, float] = field(default_factory=dict)
    n_tokens: dict[float, int] = field(default_factory=dict)
    alphas: list[Alpha] = field(default_factory=list)
    rules: list[Rules] = field(default_factory=list)
    places: list[Places] = field(default_factory=list)
    v: DecodeTimes = field(default_factory=DecodeTimes)
    draft_steps: dict[str, float] = field(default_factory=dict)
    speeds: list[Speed] = field(default_factory=list)


def render(measured: Measured, target: str, lenience: Sequence[float]) -> str:
    """Return all tables that have figures."""
    parts = [f"{target}\n\n" + _texts(measured), "Decodes\n\n" + _times(measured)]
    strict = [one for one in measured.alphas if one.lenience == 1]
    if strict:
        parts.append("alpha (± standard error)\n\n" + _alphas(strict, measured))
    if measured.places:
        parts.append("Acceptance by position in a draft\n\n" + _places(measured))
    if len(measured.draft_steps) > 1:
        parts.append(_best(strict, measured))
    if measured.rules:
        parts.append("Three acceptance rules\n\n" + _rules(measured))
    if set(lenience) != {1.0}:
        parts.append("Lenience (lossy)\n\n" + _lenience(measured, lenience))
    if measured.speeds:
        parts.append("Speed by draft length\n\n" + _speeds(measured))
    return "\n\n".join(parts)


def expectation(one: Alpha, measured: Measured) -> tuple[int, float]:
    """Return the best gamma for an alpha, and its expected speed relative to plain decoding."""
    step = measured.draft_steps.get(one.drafter, 0.0)
    alpha = one.alpha.mean
    gamma = theory.measured_optimal_gamma(alpha, measured.v, step)
    return gamma, theory.measured_improvement_factor(alpha, gamma, measured.v, step)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, with its first column left-aligned and the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join([line(header), line(rule), *map(line, rows)])


def _texts(measured: Measured) -> str:
    rows = [
        (f"{temperature:g}", str(n), f"{100 * measured.repeated[temperature]:.0f} %")
        for temperature, n in measured.n_tokens.items()
    ]
    return markdown(("T", "tokens generated", "repeated 4-grams"), rows)


def _times(measured: Measured) -> str:
    rows = [
        (f"v({n})", f"{1000 * seconds:.3f}", f"{seconds / measured.v.of(1):.2f}")
        for n, seconds in enumerate(measured.v, start=1)
    ]
    rows += [
        (f"d, {name}", f"{1000 * seconds:.3f}", f"{seconds / measured.v.of(1):.3f}")
        for name, seconds in measured.draft_steps.items()
    ]
    return markdown(("", "ms", "of v(1)"), rows)


def _alphas(alphas: Sequence[Alpha], measured: Measured) -> str:
    rows = []
    for one in sorted(alphas, key=lambda one: one.temperature):
        gamma, factor = expectation(one, measured)
        rows.append(
            (
                one.drafter,
                f"{one.temperature:g}",
                f"{100 * one.proposed:.0f} %",
                str(one.alpha),
                str(one.agreement),
                str(gamma),
                f"{factor:.2f}",
            )
        )
    header = ("drafter", "T", "proposes", "alpha", "greedy agreement", "best gamma", "speed")
    return markdown(header, rows)


def _best(alphas: Sequence[Alpha], measured: Measured) -> str:
    """Return a sentence for each temperature with the best draft for the target."""
    lines = []
    for temperature in measured.n_tokens:
        expected = [
            (one.drafter, *expectation(one, measured))
            for one in alphas
            if one.temperature == temperature and one.drafter in measured.draft_steps
        ] + [
            (one.drafter, *_best_place(one, measured))
            for one in measured.places
            if one.temperature == temperature
        ]
        best, gamma, factor = max(expected, key=lambda one: one[2])
        lines.append(
            f"At T = {temperature:g} {best} is best: {factor:.2f} times plain decoding with "
            f"gamma = {gamma}."
        )
    return "\n".join(lines)


def _best_place(one: Places, measured: Measured) -> tuple[int, float]:
    return one.best(measured.v, measured.draft_steps[one.drafter])


def _places(measured: Measured) -> str:
    n_places = max(len(one.by_place) for one in measured.places)
    rows = []
    for one in measured.places:
        gamma, factor = _best_place(one, measured)
        shares = [f"{share:.2f}" for share in one.by_place]
        rows.append(
            (
                one.drafter,
                f"{one.temperature:g}",
                one.acceptance,
                *shares,
                *[""] * (n_places - len(shares)),
                f"{one.tokens_per_round:.2f}",
                str(gamma),
                f"{factor:.2f}",
            )
        )
    places = map(str, range(1, n_places + 1))
    header = ("drafter", "T", "rule", *places, "per round", "best gamma", "speed")
    return markdown(header, rows)


def _rules(measured: Measured) -> str:
    rows = [
        (
            one.drafter,
            f"{one.temperature:g}",
            *map(str, (one.greedy, one.coupled, one.bound, one.rejection, one.overlap)),
        )
        for one in measured.rules
    ]
    header = (
        "draft model",
        "T",
        "greedy draft + match",
        "coupled",
        "(1 - TV) / (1 + TV)",
        "rejection",
        "1 - TV",
    )
    return markdown(header, rows)


def _lenience(measured: Measured, lenience: Sequence[float]) -> str:
    rows: dict[tuple[str, float], list[str]] = {}
    for one in sorted(measured.alphas, key=lambda one: one.temperature):
        gamma, factor = expectation(one, measured)
        cells = rows.setdefault((one.drafter, one.temperature), [])
        cells.append(f"{one.alpha} ({factor:.2f} at {gamma})")
    header = ("drafter", "T", *(f"l = {one:g}: alpha (speed at gamma)" for one in lenience))
    return markdown(
        header, [(name, f"{temperature:g}", *cells) for (name, temperature), cells in rows.items()]
    )


def _speeds(measured: Measured) -> str:
    best: dict[tuple[float, str], Speed] = {}
    for one in measured.speeds:
        key = one.temperature, one.acceptance
        if key not in best or one.measured > best[key].measured:
            best[key] = one
    rows = [
        (
            one.acceptance + (" *" if one in best.values() else ""),
            f"{one.temperature:g}",
            str(one.gamma),
            f"{one.alpha:.2f}",
            f"{one.expected:.2f}",
            f"{one.measured:.2f}",
            f"{one.low:.2f} to {one.high:.2f}",
        )
        for one in measured.speeds
    ]
    header = ("rule (* fastest)", "T", "gamma", "alpha", "expected", "measured", "turns")
    return markdown(header, rows)
