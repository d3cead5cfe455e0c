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

    The drafter changes only the speed of a session, not its output. If a drafter raises an
    Exception, or proposes too many tokens or ids that the model does not have, the round runs
    without a draft and `Stats.drafter_errors` counts it. (KeyboardInterrupt, SystemExit and others
    that are not an Exception end the requests of the round.) During a request, tokens are only
    appended to its sequence. A drafter must not call its own session.
    """

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:  # noqa: B027
        """Called when a request begins.

        Args:
            sequence: Id of the request. Discard what was stored for an earlier request with this
                id.
            prompt: Its token ids, shape [n_prompt].
        """

    @abstractmethod
    def propose(
        self, sequence: int, tokens: NDArray[np.int32], max_tokens: int
    ) -> Iterable[ProposedToken] | Iterable[Sequence[ProposedToken]] | None:
        """Propose the tokens that follow `tokens`.

        Args:
            sequence: Id of the request.
            tokens: All its tokens, prompt included, shape [n_tokens]. Images and sounds are left
                out.
            max_tokens: Maximum number of tokens to propose, at least 1.

        Returns:
            At most `max_tokens` token ids; an empty sequence or None for a round without a draft.
            Instead of ids, results of `MatchFinder.predict` or `NGramPredictor.predict` may be
            returned: with spec_length="auto" the session then uses the length of the match or the
            frequency of the token to decide how many tokens pay.
            Or up to 64 alternative continuations, each a sequence as above, the likeliest first.
            With `spec_tree` all of them are verified at once, otherwise only the first
            (docs/internals/trees.md).
        """

    def observe(  # noqa: B027
        self, sequence: int, draft: NDArray[np.int32], n_accepted: int, next_token: int
    ) -> None:
        """Called with the result of verifying a draft. Not called for the draft that ends a
        request.

        Args:
            sequence: Id of the request.
            draft: The proposed token ids, shape [n_draft]; of several continuations, the first.
            n_accepted: How many of these tokens, from the first on, the target accepted.
            next_token: The target's token after them; another continuation may have proposed it.
        """

    def end(self, sequence: int) -> None:  # noqa: B027
        """Called when a request is over, finished or not."""
