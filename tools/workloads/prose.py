"""prose: a prose text is continued."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sources import STDLIB, read_topic, unwrap
from specllama.workloads import Replay

# Chapter of the language reference, beginning of the paragraph that is the prompt, and number of
# following paragraphs that are the reference.
PASSAGES = [
    ("naming", "A *scope* defines", 4),
    ("function", "Function call semantics", 4),
    ("import", "The *public names* defined", 3),
    ("atom-identifiers", "When the name is bound", 1),
    ("comparisons", "Chapter Objects, values and types", 4),
    ("debugger", "Entering a blank line repeats", 4),
    ("types", "Traceback objects represent", 4),
    ("augassign", "An augmented assignment evaluates", 4),
    ("binary", 'The "/" (division) and "//"', 4),
]


def make() -> Iterator[Replay]:
    for topic, first, count in PASSAGES:
        heading, *paragraphs = read_topic(topic)
        at = next(i for i, paragraph in enumerate(paragraphs) if paragraph.startswith(first))
        yield _replay(heading, paragraphs[at : at + 1 + count], topic)
    licence = (STDLIB / "LICENSE.txt").read_text(encoding="utf-8")
    paragraphs = re.split(r"\n{2,}", licence)
    yield _replay("History of the software", [unwrap(each) for each in paragraphs[1:5]], "history")


def _replay(heading: str, paragraphs: list[str], name: str) -> Replay:
    prompt, *reference = (f"{paragraph}\n\n" for paragraph in paragraphs)
    return Replay(
        prompt=f"{heading}\n\n{prompt}",
        reference="".join(reference).rstrip("\n") + "\n",
        name=f"{name}: {' '.join(prompt.split()[:4])}",
        workload="prose",
    )
