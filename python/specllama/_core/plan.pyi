"""What of the C++ core only measurements, simulations and tests use: the planner and what it knows.

Arguments and results as in `specllama._core`.
"""

import math
from collections.abc import Callable, Iterable, Sequence

from specllama._core import Source

class CurvePoints:
    """A cost curve as plain numbers, to be kept from one session to the next.

    Attributes:
        seconds: [n - 1]: of a decode of n tokens at an empty context; 0: never measured.
        context_base: Seconds that each token of context adds to a decode of one token.
        context_per_token: What it adds more for each further token of the decode.
    """

    def __init__(
        self, seconds: list[float], context_base: float = 0.0, context_per_token: float = 0.0
    ) -> None: ...
    @property
    def seconds(self) -> list[float]: ...
    @property
    def context_base(self) -> float: ...
    @property
    def context_per_token(self) -> float: ...

class CostCurve:
    """v(n): the seconds of one decode of n tokens, learned from the decodes that are made.

    The logarithm of v is a guess plus an error that is a Gaussian process over log n (Rasmussen and
    Williams, "Gaussian processes for machine learning", 2006, chapter 2), with a part common to all
    n, the machine's speed.
    """

    def __init__(self) -> None: ...
    def observe(self, n: int, n_context: int, seconds: float) -> None:
        """Take in what a decode of n tokens, 1 to 65, took.

        What cannot be is ignored: seconds that are no positive number, n or n_context out of range.
        """

    def seconds(self, n: int, n_context: int = 0) -> float:
        """Return the seconds to expect of a decode of n tokens; never less than those of one."""

    def width(self, n: int, n_context: int = 0) -> int:
        """Return the rows of the cheapest decode that has room for n tokens: n, or more."""

    def doubt(self, n: int, m: int = 1) -> float:
        """Return the standard deviation of log(v(n) / v(m)).

        Raises:
            ArgumentError: n or m is not from 1 to 65.
        """

    def next_probe(self, n_max: int) -> int:
        """Return the n up to n_max that is most worth a measurement of its own; 0: none is."""

    def points(self) -> CurvePoints:
        """Return what was learned."""

    def restore(self, points: CurvePoints) -> None:
        """Start anew from what an earlier session learned."""

class Evidence:
    """What a drafter knows about one token it proposes.

    Args:
        source: Where it comes from.
        length: match, corpus: tokens before this one that agree with the text copied from, the
            draft's own included; ngram: order of the n-gram; grammar: bytes foreseen behind this
            token; else 0.
        confidence: ngram: `Prediction.confidence`; model: probability; match: 0 where the token
            copied had itself broken off a copy, else 1; grammar: 1 where nothing else may come,
            else the chance that a habit is kept; other: the drafter's own estimate; in [0, 1].
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
    the longest context that the sequence ends with and that stood before; among equals for one at
    the place where the last copy broke off, or up to 8 places on. From there, or from a context of
    4 tokens and more (MatchFinder), it copies; else it says what came most often (NGramPredictor),
    until that makes a match. A copied token that had itself broken off a copy has confidence 0.

    Args:
        reference: Token ids of a text that may be drafted from, too.

    Raises:
        ArgumentError: A token id is negative.
    """

    def __init__(self, *, reference: Iterable[int] = ()) -> None: ...
    def append(self, token: int) -> None:
        """Take in the next token. Raises ArgumentError for a negative id."""

    def append_batch(self, tokens: Iterable[int]) -> None:
        """Take in tokens in order. Raises ArgumentError for a negative id."""

    def draft(self, n: int = 4) -> list[tuple[int, Evidence]]:
        """Return up to `n` tokens, 0 to 64, that may come next. Raises ArgumentError for another
        `n`."""

    def tree(self, n: int = 4, n_beside: int = 1) -> list[tuple[int, Evidence, int]]:
        """Return the same, and behind it what may come in its tokens' place: of each token also
        which one it comes after, by its number, or -1.

        Args:
            n: Most tokens in a row, 0 to 64.
            n_beside: Most guesses beside the first at a position, 0 to 7.

        Raises:
            ArgumentError: One of them is out of range.
        """

class Phase:
    """What is known of the phase that one request's text is in; see `Planner.begin`."""

class Choice:
    """What a round should do for a sequence.

    Attributes:
        offer: Index of the draft to verify; -1: none.
        n_draft: How many of its tokens.
        tokens: Tokens to expect of the round; what is in doubt counts less in a request that
            drafting has made slower.
        seconds: Seconds to expect of the decode, without those already spent.
        saved: Seconds that it is expected to save against decoding plainly.
    """

    @property
    def offer(self) -> int: ...
    @property
    def n_draft(self) -> int: ...
    @property
    def tokens(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def saved(self) -> float: ...

class Turn:
    """A sequence in a round: what is at hand, what is done, and what came of it.

    Args:
        phase: Its request's; updated by `Planner.learn`.
        n_tokens: Tokens so far: the position of a draft's first token.
        n_pending: Of those, how many the decode takes in before the draft.
        max_draft: Most tokens that may be drafted.
        n_behind: Tokens that a draft model has to take in before it drafts.
        overhead: Seconds a round costs beside drafting and decoding.
        spent: Seconds that went into drafts for this round.
        asked: Whether a draft model has worked in them, whether it drafted anything or not.
        place: In the memory, where sequences lie apart in it.
        max_rows: Most tokens that may be verified.
    """

    def __init__(
        self,
        phase: Phase,
        n_tokens: int,
        *,
        n_pending: int = 1,
        max_draft: int = 64,
        n_behind: int = 0,
        overhead: float = 0.0,
        spent: float = 0.0,
        asked: bool = False,
        place: int = 0,
        max_rows: int = 64,
    ) -> None: ...
    def offer(
        self,
        evidence: Sequence[Evidence],
        *,
        n_known: int = 0,
        n_rest: int = 0,
        drawn: bool = False,
        required: bool = False,
        sides: Sequence[tuple[Evidence, int]] = ...,
    ) -> None:
        """Add a draft that could be verified.

        Args:
            evidence: What is known of each of its tokens.
            n_known, n_rest: How many of its first tokens, and of its last, are another draft's:
                nothing is learned from these.
            drawn: They were drawn, and are verified all or none.
            required: They must be verified.
            sides: Tokens beside it: what is known of each, and which token it comes after, by its
                number: those of the draft first, then these; -1: what is committed. None if drawn.
        """

    def hear(self, offer: int, side: int, right: bool) -> None:
        """Say that the target was heard about a side token, whose elder siblings were wrong, and
        whether it agreed. Both by their number."""

    @property
    def choice(self) -> Choice:
        """By `Planner.choose`."""

    @property
    def rows(self) -> list[int]:
        """Which tokens of the draft and beside it are verified, by their number; of a drawn draft
        all are."""

    def came(
        self,
        n_accepted: int,
        n_right: Sequence[int],
        n_judged: int | None = None,
        n_again: int = 0,
    ) -> None:
        """Say what came of it.

        Args:
            n_accepted: Tokens of the draft that were accepted.
            n_right: Of each offer, how many of its first tokens are known to be the target's.
            n_judged: How many tokens of the target are known (one more than it accepted).
            n_again: Of the accepted ones, those that lay beside the trunk: the next decode takes
                them in once more.

        Raises:
            ArgumentError: There are not as many numbers as offers.
        """

class Row:
    """A token that could be verified.

    Attributes:
        sequence: The number of its sequence, in the order in which these were added.
        number: Its own in the sequence, from 0.
        tokens: To expect of it.
        gain: Seconds that these are worth.
    """

    @property
    def sequence(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def tokens(self) -> float: ...
    @property
    def gain(self) -> float: ...

class Allotment:
    """Which of the tokens at hand are verified in one decode, of one or of many sequences: those
    that gain the most, as many as pay by what a decode of so many rows takes."""

    def __init__(self) -> None: ...
    def add_sequence(
        self,
        n_rows: int = 1,
        stake: float = math.inf,
        place: int = 0,
        most: int = 64,
    ) -> None:
        """Add a sequence.

        Args:
            n_rows: Rows that are decoded in any case.
            stake: Seconds that its drafts may add to the decode.
            place: In the memory.
            most: Most of its rows that are verified.
        """

    def add_row(self, predecessor: int, tokens: float, gain: float) -> int:
        """Add a row of the sequence that was added last.

        Args:
            predecessor: The number of the row it comes after; -1: the committed tokens.
            tokens: To expect of it.
            gain: Seconds that these are worth.
        """

    def allot(self, price: Callable[[int], float]) -> None:
        """Choose the rows. `price`: the seconds of a decode of so many rows."""

    def allot_alike(self, price: Callable[[int], float]) -> None:
        """The same where only neighbours with as many rows each are decoded at once."""

    @property
    def chosen(self) -> list[Row]:
        """The rows that are verified, each behind its predecessor."""

    @property
    def seconds(self) -> float: ...

class Planner:
    """Decides how many tokens of which draft are verified, by expected speed.

    That is the tokens to expect over the seconds that drafting and verifying them take, for every
    length from 0 to 64. (Leviathan et al., "Fast Inference from Transformers via Speculative
    Decoding", 2023, Theorem 3.8, with measured costs and a probability for each token.)

    It reads no clock: the same calls give the same choices.
    """

    def __init__(self, *, pads: bool = False, alike: bool = False) -> None:
        """
        Args:
            pads: Decodes get rows beside those that are wanted where that makes them cheaper.
            alike: Only neighbours in the memory with as many rows each are decoded at once.
        """

    def begin(self, temperature: float = 0.0, n_prompt: int = 0) -> Phase:
        """Return the phase at the start of a request whose prompt has n_prompt tokens."""

    def choose(self, turns: Sequence[Turn]) -> None:
        """Choose for turns that share a decode."""

    def n_prefix(self, turn: Turn) -> int:
        """Return from behind how many tokens of the chosen draft a draft model should go on: all,
        or none."""

    def goes_on(self, turn: Turn, draft: Sequence[Evidence], seconds: float = 0.0) -> bool:
        """Return whether a draft model should draft another token after those of `draft`.

        Args:
            turn: The sequence's, chosen.
            draft: What is known of each token so far.
            seconds: What they took.
        """

    def learn(self, turn: Turn) -> None:
        """Take in what came of a turn."""

    def width(self, n: int, n_context: int = 0) -> int:
        """Return the rows that a decode of n tokens should have."""

    def observe_decode(self, n: int, n_context: int, seconds: float) -> None:
        """Take in what a decode of n tokens by the target took."""

    def observe_drafting(
        self, n_steps: int, n_drafted: int, n_behind: int, n_context: int, seconds: float
    ) -> None:
        """Take in what the draft model took for so many steps, by which it drafted so many tokens
        and took in `n_behind` that it had not seen."""

    @property
    def cost(self) -> CostCurve: ...
    @property
    def draft_cost(self) -> CostCurve: ...
