"""The part of the C++ core that only measurements, simulations and tests use: the planner and what
it knows.

Arguments and results as in `specllama._core`.
"""

import math
from collections.abc import Callable, Iterable, Sequence

from specllama._core import Source

class CurvePoints:
    """A cost curve as plain numbers, to be kept from one session to the next.

    Attributes:
        seconds: [n - 1]: seconds of a decode of n tokens at an empty context; 0: never measured.
        context_base: Seconds that each token of context adds to a decode of one token.
        context_per_token: Seconds that each token of context adds for each further token decoded.
        width_switch: Seconds that it costs to decode another number of tokens than before.
    """

    def __init__(
        self,
        seconds: list[float],
        context_base: float = 0.0,
        context_per_token: float = 0.0,
        width_switch: float = 0.0,
    ) -> None: ...
    @property
    def seconds(self) -> list[float]: ...
    @property
    def context_base(self) -> float: ...
    @property
    def context_per_token(self) -> float: ...
    @property
    def width_switch(self) -> float: ...

class CostCurve:
    """v(n): the seconds of one decode of n tokens, learned from the decodes that are made.

    The logarithm of v is a guess plus an error. The error is a Gaussian process over log n
    (Rasmussen and Williams, "Gaussian processes for machine learning", 2006, chapter 2), with a
    part common to all n: the machine's speed.
    """

    def __init__(self) -> None: ...
    def observe(self, n: int, n_context: int, seconds: float) -> None:
        """Take in what a decode of n tokens, 1 to 65, took.

        Impossible values are ignored: seconds that are no positive number, n or n_context out of
        range.
        """

    def seconds(self, n: int, n_context: int = 0) -> float:
        """Return the expected seconds of a decode of n tokens, never less than those of one."""

    def doubt(self, n: int, m: int = 1) -> float:
        """Return the standard deviation of log(v(n) / v(m)).

        Raises:
            ArgumentError: n or m is not from 1 to 65.
        """

    def next_probe(self, n_max: int) -> int:
        """Return the n up to n_max that most deserves a measurement of its own; 0: none does."""

    def set_width_switch(self, seconds: float, pads: bool = True) -> None:
        """Set what it costs that a decode has another number of tokens than the one before.

        The first two decodes of a new number are not learned from then.

        Args:
            seconds: Of those two decodes together, beyond what others take; 0: nothing.
            pads: Whether decodes can be filled up to the number of tokens of the one before.
        """

    def points(self) -> CurvePoints:
        """Return what was learned."""

    def restore(self, points: CurvePoints) -> None:
        """Start anew from what an earlier session learned."""

class Evidence:
    """What a drafter knows about one token it proposes.

    Args:
        source: Where the token comes from.
        length: match, corpus: tokens before this one that agree with the text copied from, the
            draft's own included; ngram: order of the n-gram; grammar: bytes foreseen after this
            token; else 0.
        confidence: From 0 to 1. ngram: `Prediction.confidence`; model: probability; match: 0 if the
            token copied had itself broken off a copy, else 1; grammar: 1 if no other token is
            allowed, else the chance that a habit is kept; other: the drafter's own estimate.
    """

    def __init__(self, source: Source, length: int = 0, confidence: float = 1.0) -> None: ...
    @property
    def source(self) -> Source: ...
    @property
    def length(self) -> int: ...
    @property
    def confidence(self) -> float: ...

class NGramFollower:
    """Drafts for one sequence as a session's n-gram drafter does ("ngram").

    While the last tokens were what a copy had said, it goes on with that copy. Else it looks for
    the longest context at the end of the sequence that also stands earlier; among equally long
    ones it prefers the place where the last copy broke off, or one up to 8 tokens after it. It
    copies from there, or from any context of 4 tokens or more (MatchFinder); else it predicts the
    most frequent token (NGramPredictor), until the draft's end makes a match. A copied token that
    had itself broken off a copy has confidence 0.

    Args:
        reference: Token ids of a text that may be drafted from as well.

    Raises:
        ArgumentError: A token id is negative.
    """

    def __init__(self, *, reference: Iterable[int] = ()) -> None: ...
    def append(self, token: int) -> None:
        """Take in the next token. Raises ArgumentError for a negative id."""

    def append_batch(self, tokens: Iterable[int]) -> None:
        """Take in tokens in order. Raises ArgumentError for a negative id."""

    def draft(self, n: int = 4) -> list[tuple[int, Evidence]]:
        """Return up to `n` tokens, 0 to 64, that may come next. Raises ArgumentError if `n` is out
        of range."""

    def tree(self, n: int = 4, n_beside: int = 1) -> list[tuple[int, Evidence, int]]:
        """Return the same tokens, then guesses beside them. The third entry of each is the index of
        the token that it follows, or -1 for the sequence's end.

        Args:
            n: Most tokens in a row, 0 to 64.
            n_beside: Most guesses beside the first at a position, 0 to 7.

        Raises:
            ArgumentError: An argument is out of range.
        """

class TextRegime:
    """What is known of the regime that one request's text is in; from `Planner.begin`."""

class Choice:
    """What a round should do for a sequence.

    Attributes:
        candidate: Index of the draft to verify; -1: none.
        n_draft: How many of its tokens to verify, including tokens beside it.
        tokens: Expected tokens of the round. In a request that drafting has made slower, doubtful
            tokens count less.
        seconds: Expected seconds of the decode, without those already spent.
        time_saved: Expected seconds saved against plain decoding.
        n_padding: Tokens by which the decode, of all sequences, should be filled up.
    """

    @property
    def candidate(self) -> int: ...
    @property
    def n_draft(self) -> int: ...
    @property
    def tokens(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def time_saved(self) -> float: ...
    @property
    def n_padding(self) -> int: ...

class PlannedRound:
    """A sequence's part of a round: the drafts at hand, the choice, and the outcome.

    Args:
        regime: The regime of its request; updated by `Planner.learn`.
        n_tokens: Tokens so far, which is the position of a draft's first token.
        n_pending: How many of these the decode takes in before the draft.
        max_draft: Most tokens that may be drafted in a row.
        n_unprocessed: Tokens that a draft model has to take in before it drafts.
        overhead: Seconds that a round costs besides drafting and decoding.
        spent: Seconds already spent on drafts for this round.
        without_draft_model: The choice without a draft model, if one has worked since, even if it
            drafted nothing. Candidates have the same numbers in both.
        stream: Number of its stream, in a memory with a stream for each sequence.
        max_rows: Most tokens that may be verified.
        n_left: Most tokens that the request may still get.
    """

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
    ) -> None:
        """Add a draft that could be verified.

        Args:
            evidence: What is known of each of its tokens.
            n_known, n_rest: How many of its first tokens, and of its last, belong to another draft:
                nothing is learned from these.
            drawn: Its tokens were drawn, and are verified all or none.
            required: It is the one to verify, whatever else there is.
            alternatives: To its tokens: what is known of each, and the number of the token that it
                follows: the draft's tokens are numbered first, then these; -1: the committed
                tokens. There are none if it is drawn.
        """

    def on_alternative(self, candidate: int, number: int, right: bool) -> None:
        """Say whether an alternative was the target's token. It must be known: its elder siblings
        were wrong. candidate, number: which one."""

    n_to_check: int
    """Number of tokens of `choice` that a draft model checks before it drafts its own; default 0.
    It is for the caller to set, before `Planner.should_continue`."""

    @property
    def choice(self) -> Choice:
        """The decision of `Planner.choose`."""

    @property
    def rows(self) -> list[int]:
        """Numbers of the tokens to verify, of the draft and beside it; unused for a drawn draft,
        which is verified whole."""

    def on_result(
        self,
        n_accepted: int,
        n_right: Sequence[int],
        n_judged: int | None = None,
        n_repeated: int = 0,
    ) -> None:
        """Say what came of the round.

        Args:
            n_accepted: Tokens of the draft that were accepted.
            n_right: For each candidate, how many of its first tokens are known to be the target's.
            n_judged: How many tokens of the target are known; None: one more than it accepted.
            n_repeated: Accepted tokens on a branch, which the next decode takes in once
                more.

        Raises:
            ArgumentError: n_right has not one number for each candidate.
        """

class Row:
    """A token that could be verified.

    Attributes:
        sequence: Number of its sequence, in the order in which sequences were added.
        number: Number of the row in its sequence, from 0.
        tokens: Tokens to expect of it.
        gain: Seconds that these tokens are worth.
    """

    @property
    def sequence(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def tokens(self) -> float: ...
    @property
    def gain(self) -> float: ...

class VerificationBatch:
    """Decides which of the tokens at hand, of one or of many sequences, are verified in one decode:
    those that gain the most, as many as pay at the price of a decode of that many rows."""

    def __init__(self) -> None: ...
    def add_sequence(
        self,
        n_rows: int = 1,
        draft_budget: float = math.inf,
        stream: int = 0,
        most: int = 64,
    ) -> None:
        """Add a sequence.

        Args:
            n_rows: Rows that are decoded in any case.
            draft_budget: Seconds that its drafts may add to the decode.
            stream: Number of its stream in the memory.
            most: Most of its other rows that may be verified.
        """

    def add_row(self, predecessor: int, tokens: float, gain: float) -> int:
        """Add a row of the sequence that was added last.

        Args:
            predecessor: Number of the row that it follows, as returned for that row; -1: the
                committed tokens.
            tokens: Tokens to expect of it.
            gain: Seconds that these tokens are worth.
        """

    def select(self, cost: Callable[[int], float]) -> None:
        """Choose the rows. cost: gives the seconds of a decode of n rows."""

    def select_per_stream(self, cost: Callable[[int], float]) -> None:
        """The same if only neighbours with equal numbers of rows are decoded at once."""

    @property
    def chosen(self) -> list[Row]:
        """The rows to verify, each after its predecessor."""

    @property
    def seconds(self) -> float: ...

class Planner:
    """Decides how many tokens of which draft are verified, by expected speed.

    The speed is the expected tokens divided by the seconds of drafting and verifying, computed for
    every length from 0 to 64. (Leviathan et al., "Fast Inference from Transformers via Speculative
    Decoding", 2023, Theorem 3.8, with measured costs and a probability for each token.)

    It reads no clock: the same calls give the same choices.
    """

    def __init__(self, *, per_sequence_streams: bool = False, most_rows: int = ...) -> None:
        """
        Args:
            per_sequence_streams: Whether the memory has a stream for each sequence, so that only
                neighbours with equal numbers of rows are decoded at once.
            most_rows: Drafts of several sequences that share a decode make it no larger than this;
                the default is no limit.
        """

    def begin(self, temperature: float = 0.0, n_prompt: int = 0) -> TextRegime:
        """Return the regime at the start of a request whose prompt has n_prompt tokens."""

    def choose(self, rounds: Sequence[PlannedRound]) -> None:
        """Choose for sequences that share a decode; see `PlannedRound.choice`."""

    def n_to_check(self, round: PlannedRound) -> int:
        """Return how many tokens of the chosen draft a draft model should check in its first step,
        for `PlannedRound.n_to_check`."""

    def should_continue(
        self, round: PlannedRound, draft: Sequence[Evidence], seconds: float = 0.0
    ) -> bool:
        """Return whether a draft model should draft another token after those of `draft`.

        Args:
            round: Of the sequence, after `choose`.
            draft: What is known of each token so far.
            seconds: Seconds that these tokens took.
        """

    def learn(self, round: PlannedRound) -> None:
        """Learn from what came of a round. Raises ArgumentError before `on_result`."""

    def observe_decode(self, n: int, n_context: int, seconds: float) -> None:
        """Take in the seconds that the target took to decode n tokens."""

    def observe_drafting(
        self, n_steps: int, n_drafted: int, n_unprocessed: int, n_context: int, seconds: float
    ) -> None:
        """Take in what n_steps of the draft model took, in which it drafted n_drafted tokens and
        took in n_unprocessed tokens that it had not seen."""

    @property
    def cost(self) -> CostCurve: ...
    @property
    def draft_cost(self) -> CostCurve: ...
