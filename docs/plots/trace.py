"""Makes trace-light.svg and trace-dark.svg: the answer of `specllama demo`, with who drafted what.

It is SmolLM2's, of the extra `demo`, in F16: `python docs/plots/trace.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from specllama import SpecSession
from specllama.commands.demo import REQUEST
from specllama.formats.trace import Trace
from specllama.formats.traced_token import TracedToken
from specllama.model.float_copy import float_copy
from specllama_light.default_model import installed_model

MOST_TOKENS = 160
CHARACTER, LINE, MARGIN = 8.4, 22, 14  # in pixels
COLORS = {
    "light": {"paper": "#ffffff", "ink": "#1b1b1b", "faint": "#6b6b6b", "match": "#cdebc9",
              "ngram": "#e6efb0", "own": "#0b4fa8"},
    "dark": {"paper": "#0d1117", "ink": "#e8e8e8", "faint": "#9a9a9a", "match": "#1f4d26",
             "ngram": "#4a4f14", "own": "#8ab8ff"},
}  # fmt: skip


def lines(tokens: Iterable[TracedToken]) -> Iterator[list[tuple[str, str]]]:
    """Yield the lines of a text: its pieces, each with the name of its colour."""
    line: list[tuple[str, str]] = []
    for token in tokens:
        drafter = token.drafted.drafter if token.drafted is not None else "own"
        first, *others = token.text.split("\n")
        line.append((first, drafter))
        for other in others:
            yield line
            line = [(other, drafter)]
    yield line


def drawn(trace: Trace, colors: dict[str, str]) -> str:
    """Return the picture."""
    kept = [
        token
        for index in range(len(trace.rounds))
        for token in trace.tokens(index)
        if token.kind not in ("rejected", "cut")
    ]
    stats = trace.stats
    caption = (
        f"{stats.generated_tokens} tokens in {stats.rounds} decodes: {stats.accepted} were drafted "
        "from the prompt and accepted (coloured)"
    )
    shown = []
    y = MARGIN + LINE
    width = len(caption) * CHARACTER * 0.86
    for line in lines(kept):
        x = float(MARGIN)
        for piece, drafter in line:
            size = len(piece) * CHARACTER
            if drafter in colors and drafter != "own" and piece:
                shown.append(
                    f'<rect x="{x:.1f}" y="{y - 15}" width="{size:.1f}" height="{LINE - 2}" '
                    f'fill="{colors[drafter]}"/>'
                )
            if piece.strip():
                ink = colors["own"] if drafter == "own" else colors["ink"]
                weight = ' font-weight="bold"' if drafter == "own" else ""
                shown.append(
                    f'<text x="{x:.1f}" y="{y}" textLength="{size:.1f}" fill="{ink}"{weight} '
                    f'xml:space="preserve">{escape(piece)}</text>'
                )
            x += size
        width = max(width, x)
        y += LINE
    shown.append(
        f'<text x="{MARGIN}" y="{y + 6}" fill="{colors["faint"]}" font-size="12">{caption}</text>'
    )
    width, height = round(width + 2 * MARGIN), y + 6 + MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="monospace" font-size="14">'
    )
    paper = f'<rect width="100%" height="100%" rx="6" fill="{colors["paper"]}"/>'
    return "\n".join([head, paper, *shown, "</svg>\n"])


def main() -> None:
    smol = installed_model()
    if smol is None:
        raise SystemExit("pip install 'specllama[demo]' brings the model.")
    with float_copy(smol) as model, SpecSession(model, n_threads=1) as session:
        messages = [{"role": "user", "content": REQUEST}]
        trace = session.chat(messages, max_tokens=MOST_TOKENS, trace=True).trace
        assert trace is not None
    for name, colors in COLORS.items():
        Path(__file__).with_name(f"trace-{name}.svg").write_text(drawn(trace, colors))


if __name__ == "__main__":
    main()
