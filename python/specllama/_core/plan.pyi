"""The part of the C++ core that only measurements, simulations and tests use: the planner and its
data. The contracts are in the headers of csrc/plan and csrc/draft/ngram; this file describes only
differences. Arguments and results are as in `specllama._core`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from specllama._core import History, Source

class CurvePoints:
    """A cost curve as plain numbers, to keep it between sessions."""

    def __init__(
        self,
        seconds: list[float],
        context_base: float = 0.0,
        context_per_token: float = 0.0,
        width_switch: float = 0.0,
    ) -> None: ...
    seconds: Final[list[float]]
    context_base: Final[float]
    context_per_token: Final[float]
    width_switch: Final[float]

class CostCurve:
    """v(n): the seconds of a decode of n tokens, learned from observed decodes."""

    def __init__(self) -> None: ...
    def observe(self, n: int, n_context: int, seconds: float) -> None: ...
    def seconds(self, n: int, n_context: int = 0) -> float: ...
    def doubt(self, n: int, m: int = 1) -> float: ...
    def next_probe(self, n_max: int) -> int: ...
    def set_width_switch(self, seconds: float, pads: bool = True) -> None: ...
    def points(self) -> CurvePoints: ...
    def restore(self, points: CurvePoints) -> None: ...

class Evidence:
    """What a drafter knows about a proposed token."""

    def __init__(self, source: Source, length: int = 0, confidence: float = 1.0) -> None: ...
    source: Final[Source]
    length: Final[int]
    confidence: Final[float]

class NGramFollower:
    """Drafts for one sequence, like a session's n-gram drafter ("ngram")."""

    def __init__(self, *, reference: Iterable[int] = ()) -> None: ...
    def append(self, token: int) -> None: ...
    def append_batch(self, tokens: Iterable[int]) -> None: ...
    def draft(self, n: int = 4) -> list[tuple[int, Evidence]]: ...
    def tree(self, n: int = 4, max_alternatives: int = 1) -> list[tuple[int, Evidence, int]]:
        """Return the same tokens, then alternatives to them. The third entry of each is the index
        of the token before it, or -1 for the end of the sequence."""

class HistoryFollower:
    """Drafts for one sequence from earlier requests, like a session with a `memory` ("history").

    Args:
        history: The earlier requests; more may be appended.
        prompt: Token ids with which the sequence begins.
        owner: The owner of the requests to draft from.

    Raises:
        ArgumentError: A token id is negative.
    """

    def __init__(self, history: History, prompt: Iterable[int], *, owner: int = 0) -> None: ...
    def append_batch(self, tokens: Iterable[int]) -> None:
        """Add tokens in order. Raises ArgumentError for a negative id."""

    def draft(self, n: int = 4) -> list[tuple[int, Evidence]]:
        """Return up to `n` tokens, 0 to 64, that may come next. Raises ArgumentError if `n` is out
        of range."""

class TextRegime:
    """Statistics of the regime of one request's text; from `Planner.begin`."""

class Choice:
    """The planner's decision for a sequence in a round."""

    candidate: Final[int]
    n_draft: Final[int]
    tokens: Final[float]
    seconds: Final[float]
    time_saved: Final[float]
    n_padding: Final[int]

class PlannedRound:
    """A sequence's part of a round: the available drafts, the choice, and the outcome."""

    def __init__(
        self,
        regime: TextRegime,
        n_tokens: int,
        *,
        n_pending: int = 1,
        max_draft: int = 64,
        n_unprocessed: int = 0,
        overhead: float = 0.0,
        spent: float = 0.0,
        without_draft_model: Choice | None = None,
        stream: int = 0,
        max_rows: int = 64,
        n_left: int = 2147483647,
    ) -> None: ...
    def add(
        self,
        evidence: Sequence[Evidence],
        *,
        n_known: int = 0,
        n_rest: int = 0,
        drawn: bool = False,
        required: bool = False,
        alternatives: Sequence[tuple[Evidence, int]] = ...,
    ) -> None: ...
    def on_alternative(self, candidate: int, number: int, right: bool) -> None: ...
    n_to_check: int
    choice: Final[Choice]
    rows: Final[list[int]]
    def on_result(
        self,
        n_accepted: int,
        n_right: Sequence[int],
        n_judged: int | None = None,
        n_repeated: int = 0,
    ) -> None: ...

class Row:
    """A token that could be verified."""

    sequence: Final[int]
    number: Final[int]
    tokens: Final[float]
    gain: Final[float]

class VerificationBatch:
    """Decides which of the available tokens, of one or many sequences, are verified in one decode:
    those with the most gain, as many as pay at the cost of a decode of that many rows."""

    def __init__(self) -> None: ...
    def add_sequence(
        self,
        n_rows: int = 1,
        draft_budget: float = math.inf,
        stream: int = 0,
        most: int = 64,
    ) -> None: ...
    def add_row(self, predecessor: int, tokens: float, gain: float) -> int: ...
    def select(self, cost: Callable[[int], float]) -> None:
        """Choose the rows. cost: returns the seconds of a decode of n rows."""

    def select_per_stream(self, cost: Callable[[int], float]) -> None: ...
    chosen: Final[list[Row]]
    seconds: Final[float]

class Planner:
    """Decides how many tokens of which draft are verified, by expected speed."""

    def __init__(self, *, per_sequence_streams: bool = False, most_rows: int = ...) -> None: ...
    def begin(self, temperature: float = 0.0, n_prompt: int = 0) -> TextRegime: ...
    def choose(self, rounds: Sequence[PlannedRound]) -> None: ...
    def n_to_check(self, round: PlannedRound) -> int: ...
    def set_tokens_per_step(self, n: int) -> None:
        """Set the number of tokens that a step of the draft model drafts (1 to 65). For n > 1,
        there is only one step."""

    def break_even(self, n_context: int) -> float:
        """Return the share of the draft model's tokens that must be accepted for it to pay; 2: no
        share is enough; 0: its cost is unknown."""

    def should_continue(
        self, round: PlannedRound, draft: Sequence[Evidence], seconds: float = 0.0
    ) -> bool: ...
    def learn(self, round: PlannedRound) -> None: ...
    def observe_decode(self, n: int, n_context: int, seconds: float) -> None: ...
    def observe_drafting(
        self, n_steps: int, n_drafted: int, n_unprocessed: int, n_context: int, seconds: float
    ) -> None: ...
    cost: Final[CostCurve]
    draft_cost: Final[CostCurve]
