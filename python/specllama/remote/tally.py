"""The statistics of a generation whose target is elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from specllama._core import Stats
from specllama.remote.tree import Tree


class Tally:
    """Counts a generation's rounds and tokens as they come.

    Attributes:
        exact: Whether the target's session is in the exact configuration; known at the end.
        n_reused: Tokens of the prompt that the target's KV memory held; known at the end.
        draft_seconds: Seconds that drafting took here.
        n_draft_decoded: Tokens that a draft model gave.
        n_errors, last_error: Number of errors of a custom drafter, and the last one; "": none.
    """

    def __init__(self, seed: int, n_prompt: int) -> None:
        self.exact = False
        self.n_reused = 0
        self.draft_seconds = 0.0
        self.n_draft_decoded = 0
        self.n_errors = 0
        self.last_error = ""
        self._seed = seed
        self._n_prompt = n_prompt
        self._n_first = 0
        self._rounds: list[tuple[int, int]] = []
        self._by_position: list[tuple[int, int]] = []
        self._by_rank: list[tuple[int, int]] = []
        self._drafted: Counter[str] = Counter()
        self._accepted: Counter[str] = Counter()
        self._prefill = 0.0
        self._verify = 0.0

    @property
    def n_rounds(self) -> int:
        """Number of rounds so far."""
        return len(self._rounds)

    def prompt(self, n_tokens: int, seconds: float) -> None:
        """Count the round that ended the prompt and gave n_tokens tokens."""
        self._n_first = n_tokens
        self._rounds.append((0, 0))
        self._prefill += seconds

    def round(self, draft: Tree, tokens: Sequence[int], seconds: float) -> None:
        """Count a round of a draft that gave `tokens`; seconds: from the request to its answer,
        round trip included."""
        accepted = set(draft.path(tokens))
        self._rounds.append((len(draft.tokens), len(accepted)))
        for i, one in enumerate(draft.evidence):
            self._drafted[one.source.name] += 1
            self._accepted[one.source.name] += i in accepted
            _count(self._by_position, draft.depths[i], i in accepted)
            _count(self._by_rank, draft.ranks[i], i in accepted)
        self._verify += seconds

    def stats(
        self, n_generated: int, decode_seconds: list[float], draft_step_seconds: float
    ) -> Stats:
        """Return the statistics so far."""
        return Stats(
            seed=self._seed,
            exact=self.exact,
            prompt_tokens=self._n_prompt,
            reused_tokens=self.n_reused,
            generated_tokens=n_generated,
            prefill_generated_tokens=self._n_first,
            by_round=self._rounds,
            by_position=self._by_position,
            by_rank=self._by_rank,
            by_drafter={
                name: (n, self._accepted[name]) for name, n in dict(self._drafted).items()
            },
            decode_seconds=decode_seconds,
            draft_step_seconds=draft_step_seconds,
            drafter_errors=self.n_errors,
            last_drafter_error=self.last_error,
            seconds={
                "prefill": self._prefill,
                "draft": self.draft_seconds,
                "verify": self._verify,
                "total": self._prefill + self.draft_seconds + self._verify,
            },
        )  # fmt: skip


def _count(counts: list[tuple[int, int]], at: int, accepted: bool) -> None:
    counts += [(0, 0)] * (at + 1 - len(counts))
    n_drafted, n_accepted = counts[at]
    counts[at] = (n_drafted + 1, n_accepted + accepted)
