"""Drafters written in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from specllama._core import MatchedToken, Prediction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ProposedToken: TypeAlias = int | MatchedToken | Prediction


class Drafter(ABC):
    """Proposes tokens for the target to verify. Subclass it and pass it as `draft=`.

    The output of a session does not depend on its drafter, only the speed does. If a drafter raises
    an Exception, or proposes too many tokens or ids that are no tokens of the model, the round goes
    without a draft and `Stats.drafter_errors` counts it. (KeyboardInterrupt, SystemExit and
    anything else that is no Exception ends the requests of the round.) Within a request the tokens
    of a sequence only grow. A drafter must not call its own session.
    """

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:  # noqa: B027
        """Hear of a new request.

        Args:
            sequence: Its id; anything known of an earlier request with this id is void.
            prompt: Its token ids, shape [n_prompt].
        """

    @abstractmethod
    def propose(
        self, sequence: int, tokens: NDArray[np.int32], max_tokens: int
    ) -> Iterable[ProposedToken] | Iterable[Sequence[ProposedToken]] | None:
        """Propose what follows `tokens`.

        Args:
            sequence: Id of the request.
            tokens: All its tokens, prompt included, shape [n_tokens]. Images and sounds are left
                out.
            max_tokens: Most tokens that may be proposed, at least 1.

        Returns:
            Token ids, at most `max_tokens` of them; none, or None, for a round without a draft.
            Ids may be replaced by what `MatchFinder.predict` or `NGramPredictor.predict` returned:
            with spec_length="auto" the session then knows how long the match is, or how frequent
            the token, and drafts as far as that pays.
            Or several guesses at how the text goes on, each a sequence as above, the likeliest
            first, at most 64: with `spec_tree` all of them are verified at once, otherwise only the
            first (docs/internals/trees.md).
        """

    def observe(  # noqa: B027
        self, sequence: int, draft: NDArray[np.int32], n_accepted: int, next_token: int
    ) -> None:
        """Hear what the target made of a draft. Not called for the draft that ends a request.

        Args:
            sequence: Id of the request.
            draft: The proposed token ids, shape [n_draft]; of several guesses, the first.
            n_accepted: How many of these, counted from the first, the target agreed with.
            next_token: The token that the target put after them; it may be from another guess.
        """

    def end(self, sequence: int) -> None:  # noqa: B027
        """Hear that a request is over, finished or not."""
