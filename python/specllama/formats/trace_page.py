"""A trace as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from specllama._core import DraftedToken, RoundTrace
from specllama.formats import trace_strip
from specllama.formats.traced_token import TracedToken

# Every distinction is visible twice: as a colour, and as a line or a weight. A notebook has its own
# styles, and a theme that the media query does not see. So every rule is scoped, and text colour
# and background are set together. The mark at the end of a line is not text, and rejected tokens
# cannot be selected, so copying gives exactly the text.
STYLE = (
    """
.specllama-trace { --ink: #1b1b1b; --paper: #fff; --faint: #6b6b6b; --match: #cdebc9;
  --corpus: #c9ebe4; --history: #d3e6ea; --ngram: #e6efb0; --grammar: #f7e3bd; --model: #cfe0fb;
  --other: #e5d9f5;
  --no: #b3261e; --own: #0b4fa8;
  color: var(--ink); background: var(--paper); padding: 1em; font: 15px/1.6 sans-serif }
@media (prefers-color-scheme: dark) { .specllama-trace { --ink: #e8e8e8; --paper: #181818;
  --faint: #9a9a9a; --match: #1f4d26; --corpus: #174a45; --history: #1d4652;
  --ngram: #4a4f14; --grammar: #57400f; --model: #1f3d6b; --other: #46326b;
  --no: #ff8a80; --own: #8ab8ff } }
.specllama-trace p { margin: 0 0 .4em }
.specllama-trace .text { font: 14px/1.9 monospace; white-space: pre-wrap; overflow-wrap: anywhere;
  tab-size: 4; margin-top: 1em; text-underline-position: under }
.specllama-trace .prompt, .specllama-trace .cut, .specllama-trace .newline { color: var(--faint) }
.specllama-trace .cut { font-style: italic }
.specllama-trace .match { background: var(--match); text-decoration: underline solid 3px }
.specllama-trace .corpus { background: var(--corpus); text-decoration: underline wavy 1px }
.specllama-trace .history { background: var(--history); text-decoration: underline wavy 2px }
.specllama-trace .ngram { background: var(--ngram); text-decoration: underline solid 1px }
.specllama-trace .grammar { background: var(--grammar); text-decoration: underline dashed 1px }
.specllama-trace .forced { background: var(--grammar); font-weight: bold }
.specllama-trace .model { background: var(--model); text-decoration: underline double 1px }
.specllama-trace .other { background: var(--other); text-decoration: underline dotted 2px }
.specllama-trace del { color: var(--no); font-size: 70%; user-select: none }
.specllama-trace strong { color: var(--own); font-weight: bold }
.specllama-trace .newline::before { content: "\\21b5" }
.specllama-trace .fork::before { content: "\\2514"; color: var(--faint); font-weight: normal }
.specllama-trace .round:hover { outline: 1px solid var(--faint) }
.specllama-trace .legend > * { margin-right: 1em }
.specllama-trace .caption { color: var(--faint); font-size: 85% }
"""
    + trace_strip.STYLE
)
"""The style rules of the element that `fragment` returns; the element includes them."""

_LEGEND = {
    "match": '<span class="match">accepted, copied from a match</span>',
    "corpus": '<span class="corpus">accepted, copied from the corpus</span>',
    "history": '<span class="history">accepted, copied from an earlier request</span>',
    "ngram": '<span class="ngram">accepted, n-gram</span>',
    "grammar": '<span class="grammar">accepted, from the grammar</span>',
    "forced": '<span class="forced">only token allowed by the grammar, not verified</span>',
    "model": '<span class="model">accepted, draft model</span>',
    "other": '<span class="other">accepted, other drafter</span>',
    "rejected": "<del>rejected</del>",
    "fork": '<span class="fork">alternative at an earlier position</span>',
    "replacement": "<strong>replaced</strong>",
    "plain": "<span>the model's own</span>",
    "cut": '<span class="cut">after the end</span>',
}
"""A sample of each kind of token, in the order of the legend."""

_PAGE_STYLE = """
html { color-scheme: light dark } body { margin: 0; font: 15px/1.6 sans-serif }
header { padding: .8em 1em 0 } header h1 { font-size: 1.3em; margin: 0 }
header p { margin: 0; opacity: .7 }
"""

# Control characters are shown by their Unicode pictures, except the newline and the tab.
_PICTURES = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {127: 0x2421}

_MEANING = {
    "accepted": "accepted",
    "rejected": "rejected, or after a rejected token",
    "replacement": "the model's own token, instead of the rejected one",
    "bonus": "bonus: the model's own token after an accepted draft",
    "plain": "the model's own token, nothing was drafted",
    "forced": "the only token that the grammar allowed, not verified",
    "cut": "after the end of the generation",
}


def document(fragment: str, title: str, about: str) -> str:
    """Return a document around a `fragment`.

    Args:
        fragment: The element.
        title: Its heading.
        about: A line below the heading; "": none.
    """
    line = f"<p>{escape(about)}</p>" if about else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_PAGE_STYLE}</style></head>\n"
        f"<body><header><h1>{escape(title)}</h1>{line}</header>\n{fragment}</body></html>\n"
    )


def fragment(
    figures: Iterable[str], prompt: str, rounds: Sequence[tuple[RoundTrace, Sequence[TracedToken]]]
) -> str:
    """Return an element for use in a page.

    Args:
        figures: Lines about the generation, each shown as a paragraph.
        prompt: The end of the prompt.
        rounds: The rounds, in order, each with its tokens, drafted ones first.
    """
    paragraphs = "".join(f"<p>{escape(line)}</p>\n" for line in figures)
    spans = "".join(_round(number, *one) for number, one in enumerate(rounds, 1))
    beginning = f'<span class="prompt" title="prompt">{_text(prompt)}</span>'
    return (
        f'<div class="specllama-trace"><style>{STYLE}</style>\n'
        f"{paragraphs}{trace_strip.strip(rounds)}{_legend(rounds)}"
        f'<div class="text">{beginning}{spans}</div></div>'
    )


def _legend(rounds: Iterable[tuple[RoundTrace, Sequence[TracedToken]]]) -> str:
    """Return the legend for the kinds of tokens that occur."""
    tokens = [token for _, some in rounds for token in some]
    found = {token.name for token in tokens} | {"fork" for token in tokens if token.forks}
    if "bonus" in found:
        found.add("plain")
    items = "".join(item for name, item in _LEGEND.items() if name in found)
    return f'<p class="legend">{items}</p>\n' if items else ""


def _round(number: int, one: RoundTrace, tokens: Sequence[TracedToken]) -> str:
    n_tokens = sum(token.kind not in ("rejected", "cut") for token in tokens)
    figures = _figures(one, n_tokens)
    spans = "".join(_token(token, f"round {number}: ", figures) for token in tokens)
    return f'<span class="round">{spans}</span>'


def _token(token: TracedToken, start: str, figures: str) -> str:
    evidence = "" if token.drafted is None else f"\n{_evidence(token.drafted)}"
    fork = " fork" if token.forks else ""
    if token.forks:
        evidence += ", alternative at an earlier position"
    title = escape(f"{start}{_MEANING[token.kind]}\ntoken {token.token}{evidence}\n{figures}")
    if token.kind == "rejected":
        name = ' class="fork"' if fork else ""
        return f'<del{name} title="{title}">{_text(token.text, breaks=False)}</del>'
    if token.kind == "replacement":
        return f'<strong title="{title}">{_text(token.text)}</strong>'
    return f'<span class="{token.name}{fork}" title="{title}">{_text(token.text)}</span>'


def _evidence(drafted: DraftedToken) -> str:
    tokens = "1 token" if drafted.length == 1 else f"{drafted.length} tokens"
    if drafted.drafter == "match":
        doubt = "" if drafted.confidence > 0 else ", at a token where a copy had failed"
        return f"drafted from a match of {tokens}{doubt}"
    if drafted.drafter == "corpus":
        return f"drafted from a match of {tokens} in the corpus"
    if drafted.drafter == "history":
        return f"drafted from a match of {tokens} in an earlier request"
    if drafted.drafter == "ngram":
        return f"drafted by an n-gram of order {drafted.length}, frequency {drafted.confidence:.2f}"
    if drafted.drafter == "grammar":
        if drafted.confidence < 1:
            return f"drafted as the last token in such a context, chance {drafted.confidence:.2f}"
        more = "1 byte" if drafted.length == 1 else f"{drafted.length} bytes"
        return f"drafted by the grammar, which allows no other; {more} predicted after it"
    if drafted.drafter == "model":
        return f"drafted by the draft model, confidence {drafted.confidence:.2f}"
    return "drafted by another drafter"


def _figures(one: RoundTrace, n_tokens: int) -> str:
    """Return the times of a round, and the planner's expectation, as text."""
    decoding = (
        f"decoding {1e3 * one.decode_seconds:.2f} ms"
        if one.decode_seconds > 0
        else "decoded with the prompt"
    )
    expected = (
        f"expected {one.expected_tokens:.2f} tokens in {1e3 * one.expected_seconds:.2f} ms"
        if one.expected_tokens > 0
        else "no expectation: the draft length is fixed"
    )
    return f"drafting {1e3 * one.draft_seconds:.2f} ms, {decoding}\n{expected}; got {n_tokens}"


def _text(text: str, *, breaks: bool = True) -> str:
    newline = f'<span class="newline">{chr(10) if breaks else ""}</span>'
    return escape(text.translate(_PICTURES)).replace("\n", newline)
