"""Real answers as token ids, with the drafts for them: tests/data/answers.jsonl.

48 conversations (tests/data/questions.jsonl) of eight kinds, answered greedily by
Qwen2.5-Coder-1.5B-Instruct and -0.5B-Instruct (Q4_K_M, at most 192 tokens). The second half was not
used for tuning. The answers of the larger model have the smaller model's choice at each position,
with its probability."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from specllama._core import Source
from specllama._core.plan import Evidence
from specllama.simulate import Drafts, ngram_drafts


@dataclass(frozen=True)
class Answer:
    """
    Attributes:
        model: The model that answered: "1.5B" or "0.5B".
        kind, half, name: Those of the conversation; half is "first" or "second".
        prompt, tokens: Token ids.
        draft, sure: For each token, the draft model's choice and its probability; empty without a
            draft model.
        most: Most tokens of the answer (max_tokens).
    """

    model: str
    kind: str
    half: str
    name: str
    prompt: list[int]
    tokens: list[int]
    draft: list[int]
    sure: list[float]
    most: int = 192

    @cached_property
    def drafts(self) -> Drafts:
        """The n-gram drafter's drafts from the second token on: the prefill gives the first one."""
        return ngram_drafts([*self.prompt, self.tokens[0]], self.tokens[1:])

    @cached_property
    def model_evidence(self) -> list[Evidence]:
        """The draft model's evidence for its token at each position of `drafts`."""
        return [Evidence(Source.model, 0, sure) for sure in self.sure[1:]]

    @cached_property
    def model_run(self) -> list[int]:
        """How many tokens the draft model gets right from each position of `drafts` on."""
        run = [0]
        for drafted, token in zip(reversed(self.draft[1:]), reversed(self.tokens[1:]), strict=True):
            run.append(run[-1] + 1 if drafted == token else 0)
        return run[::-1]


def answers(half: str | None = None) -> Iterator[Answer]:
    """Yield the answers of a half, or all, with more than 12 tokens."""
    path = Path(__file__).parents[1] / "tests" / "data" / "answers.jsonl"
    for line in path.read_text().splitlines():
        answer = Answer(**({"draft": [], "sure": []} | json.loads(line)))
        if half in (None, answer.half) and len(answer.tokens) > 12:
            yield answer
