"""A session of the core with a remote target."""

from __future__ import annotations

import time
from collections.abc import Callable

from specllama import _core
from specllama.drafter import Drafter
from specllama.formats.wire import MOST_DRAFTED
from specllama.remote.target import Target
from specllama.remote.verifier import Verifier

_N_PINGS = 3


class RemoteSession(_core.Session):
    """Drafts here, and lets the target verify.

    Args:
        target: The target; it is closed with the session.
        options, drafter, ngram, progress: As for `_core.Session`.
    """

    def __init__(
        self,
        target: Target,
        options: _core.SessionOptions,
        *,
        drafter: Drafter | None,
        ngram: _core.NGramOptions | None,
        progress: Callable[[float], object] | None,
    ) -> None:
        self._verifier = Verifier(target, options.n_seq)
        super().__init__(
            options,
            verifier=self._verifier,
            info=_info(target),
            drafter=drafter,
            ngram=ngram,
            progress=progress,
        )

    def hang_up(self) -> None:
        """Make the current rounds fail at once, and all later ones. Any thread may call this."""
        self._verifier.hang_up()

    def close(self) -> None:
        super().close()
        self._verifier.close()


def _info(target: Target) -> _core.VerifierInfo:
    about = target.about
    trips = []
    for _ in range(_N_PINGS):
        began = time.monotonic()
        target.ping()
        trips.append(time.monotonic() - began)
    longest = min(MOST_DRAFTED, about.max_draft_length)
    return _core.VerifierInfo(
        description=f"{about.description} at {target.url}",
        kernels=about.kernels,
        n_ctx=about.n_ctx,
        n_threads=about.n_threads,
        vocabulary=int(about.vocabulary, 16),
        bos=about.bos,
        eos=about.eos,
        fim=about.fim,
        chat_template=about.chat_template,
        max_draft_length=longest,
        max_candidates=about.max_candidates,
        max_draft_tokens=max(min(MOST_DRAFTED, about.max_draft_tokens), longest),
        table=target.table,
        decode_seconds=about.decode_seconds,
        round_trips=trips,
    )
