"""Results as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from specllama.bench import plot, table
from specllama.bench.mean import mean_of
from specllama.bench.measuring import Result, Score

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --faint: #b5b5b5;
  --ngram: #1d7a33; --match: #8a6d00; --model: #0b4fa8; --cascade: #8a2fa0 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #181818; --faint: #5a5a5a;
  --ngram: #6fd08a; --match: #e0c040; --model: #8ab8ff; --cascade: #d59be8 } }
body { color: var(--ink); background: var(--paper); font: 15px/1.5 sans-serif; max-width: 60em;
  margin: 1em auto; padding: 0 1em }
h1 { font-size: 1.4em } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse }
th, td { padding: .15em .7em; text-align: right; border-bottom: 1px solid var(--faint) }
th:first-child, td:first-child, td:last-child { text-align: left }
tr.best td { font-weight: bold }
svg { width: 100%; max-width: 680px; margin-top: 1em }
svg text { fill: var(--ink); font: 12px sans-serif }
svg path { fill: none; stroke-width: 1.5 }
.grid { stroke: var(--faint); stroke-width: .5 }
.theorem { stroke-linecap: round }
.plain { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 12 4 }
.ngram { stroke: var(--ngram); color: var(--ngram) }
.match { stroke: var(--match); color: var(--match) }
.model, .theorem { stroke: var(--model); color: var(--model) }
.cascade { stroke: var(--cascade); color: var(--cascade) }
.fixed > * { fill: currentColor } .planned > * { fill: var(--paper); stroke-width: 2 }
"""

_NOTES = """
<p>Ratios are relative to plain decoding in the same turn: medians with a 95 % confidence interval,
for the tokens after the first one. In replayed workloads the text is given, but every decode,
choice, draft, verification and rewind is done. In generated and answered workloads the model makes
its own choices, after a plain prompt or its chat template; repeated 4-grams favour drafters that
copy. "First token": the time to the first token relative to plain decoding. "Of the bound": the
share of the speed of an oracle that knows which n-gram drafts are right. "Of the promise": the
share of the speed by Theorem 3.8 (Leviathan et al. 2023) with the decode times, the draft model's
time and the acceptance of these runs.</p>
"""


def document(about: Sequence[str], results: Sequence[Result]) -> str:
    """Return a document.

    Args:
        about: Lines about the measurement: model, threads, options.
        results: The workloads. If there are several, their geometric means come last.
    """
    lines = "<br>".join(map(escape, about))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>specllama bench</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>specllama bench</h1>\n<p>{lines}</p>{_NOTES}"
        f"{''.join(map(_workload, results))}{_mean(results)}</body></html>\n"
    )


def _workload(result: Result) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in (*table.COLUMNS, ""))
    rows = "\n".join(_row(score, result) for score in result.scores)
    return (
        f"<h2>{escape(f'{result.workload} ({result.kind})')}</h2>\n"
        f"<p>{escape(table.about(result))}</p>\n"
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>\n"
        f"<p>{escape(table.best(result))}</p>\n{plot.speeds(result)}\n"
    )


def _mean(results: Sequence[Result]) -> str:
    if len(results) < 2:
        return ""
    mean = mean_of(results)
    rows = "\n".join(
        f"<tr><td>{escape(one.contestant)}</td><td>{one.ratio:.2f}x</td>"
        f"<td>{one.first_token_ratio:.2f}x</td></tr>"
        for one in mean.scores
    )
    return (
        f"<h2>{escape(table.about_mean(mean))}</h2>\n"
        "<table><thead><tr><th>contestant</th><th>ratio</th><th>first token</th></tr></thead>\n"
        f"<tbody>{rows}</tbody></table>\n"
    )


def _row(score: Score, result: Result) -> str:
    is_best = score is max(result.scores, key=lambda one: one.ratio)
    cells = [*table.cells(score), table.tokens_note(score, result.kind)]
    columns = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    start = '<tr class="best">' if is_best else "<tr>"
    return f"{start}{columns}</tr>"
