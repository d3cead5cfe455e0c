"""Sends the rounds of a session to a remote target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from specllama import _core
from specllama._core import VerifyAnswer
from specllama.remote.target import Branch, Rounds, Target
from specllama.remote.text import Text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOMENT = 0.05
"""Maximum seconds that a session waits for prompts, so that other requests may begin or end."""


class Verifier:
    """The core's interface to the target (csrc/include/specllama/verifier.h). Several sequences
    have a connection each, and their requests are sent at the same time.

    Args:
        target: The target.
        n_seq: Most texts at once.
    """

    def __init__(self, target: Target, n_seq: int) -> None:
        self._target = target
        self.tokenize, self.detokenize = target.tokenize, target.detokenize
        self._texts: dict[int, Rounds] = {}
        self._openings: dict[int, Future[VerifyAnswer]] = {}
        # Requests of abandoned texts may still run while others begin.
        self._pool = ThreadPoolExecutor(2 * n_seq, "specllama-remote") if n_seq > 1 else None
        self._running: set[Future[VerifyAnswer]] = set()

    def begin(
        self,
        sequence: int,
        prompt: NDArray[np.int32],
        generated: NDArray[np.int32],
        max_tokens: int,
        sampling: _core.SamplingOptions,
        cache_prompt: bool,
    ) -> None:
        text = self._target.begin(Text(prompt.tolist(), max_tokens, sampling, cache_prompt))
        self._texts[sequence] = text
        if self._pool is not None:
            first: list[int] = generated.tolist()
            self._openings[sequence] = self._submit(lambda: text.round(first, [], []))

    def prefilled(self, sequences: Sequence[int], waits: bool) -> list[int]:
        openings = [self._openings[one] for one in sequences if one in self._openings]
        if waits and len(openings) == len(sequences):
            wait(openings, _MOMENT, FIRST_COMPLETED)
        return [one for one in sequences if one not in self._openings or self._openings[one].done()]

    def verify(
        self, requests: Iterable[tuple[int, NDArray[np.int32], list[int], list[Branch]]]
    ) -> list[VerifyAnswer | Exception]:
        asked = list(requests)
        if len(asked) == 1 and asked[0][0] not in self._openings:
            return [_answer(self._round(*asked[0]))]  # without a hand-over to another thread
        futures = [
            self._openings.pop(one[0])
            if one[0] in self._openings
            else self._submit(self._round(*one))
            for one in asked
        ]
        wait(futures)
        return [_answer(one.result) for one in futures]

    def end(self, sequence: int) -> None:
        text = self._texts.pop(sequence)
        if opening := self._openings.pop(sequence, None):
            opening.cancel()
        if self._pool is None:
            text.close()
        else:
            self._pool.submit(text.close)

    def hang_up(self) -> None:
        """Make the current rounds fail at once, and all later ones. Any thread may call this."""
        self._target.hang_up()

    def close(self) -> None:
        """Close all connections. No text may be left."""
        if self._pool is not None:
            if any(not one.done() for one in self._running):
                self.hang_up()
            self._pool.shutdown()
        self._target.close()

    def _round(
        self, sequence: int, generated: NDArray[np.int32], draft: list[int],
        branches: list[Branch],
    ) -> Callable[[], VerifyAnswer]:  # fmt: skip
        text = self._texts[sequence]
        tokens: list[int] = generated.tolist()
        return lambda: text.round(tokens, draft, branches)

    def _submit(self, call: Callable[[], VerifyAnswer]) -> Future[VerifyAnswer]:
        assert self._pool is not None
        future = self._pool.submit(call)
        self._running = {one for one in self._running if not one.done()} | {future}
        return future


def _answer(ask: Callable[[], VerifyAnswer]) -> VerifyAnswer | Exception:
    try:
        return ask()
    except Exception as error:  # it ends only this text
        return error
