"""A model and its drafter, which can be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specllama._closing import Closing
from specllama.model.loaded_model import path_of
from specllama.model.opening import automatic_draft
from specllama.session import SpecSession

_NO_DRAFTER = "none"
_IN_WORDS = {
    None: "none",
    "ngram": "n-grams",
    "mtp": "the model's own layers of multi-token prediction",
}


class OpenModel(Closing):
    """A session that is opened again to change the drafter.

    Args:
        options: Options of SpecSession.

    Attributes:
        drafter: The current drafter, in words.

    Raises the errors of SpecSession, and ModelError if the model has no chat template.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        self._session: SpecSession | None = self._open(self._options)

    @property
    def session(self) -> SpecSession:
        """The session; a new one after `redraft`. If that failed, the session is opened again here,
        which raises the errors of SpecSession."""
        if self._session is None:
            self._session = self._open(self._options)
        return self._session

    def redraft(self, draft: str) -> None:
        """Change the drafter: "none", or "auto", "mtp", "ngram" or a draft model as for
        SpecSession.

        Raises the errors of SpecSession; then the old drafter is kept. In both cases the KV memory
        is lost, and the conversation is decoded again with the next prompt.
        """
        options = {**self._options, "draft": None if draft == _NO_DRAFTER else draft}
        self.close()  # so that only one session takes memory at a time
        self._session = self._open(options)
        self._options = options

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _open(self, options: Mapping[str, Any]) -> SpecSession:
        session = SpecSession(**options)
        try:
            _ = session.chat_template  # raises now if there is none
            self.drafter = _drafter_of(session, options)
        except BaseException:
            session.close()
            raise
        return session


def _drafter_of(session: SpecSession, options: Mapping[str, Any]) -> str:
    draft = options["draft"]
    if draft == "auto":
        is_remote = options.get("target") is not None
        bundled = options["model"] is None
        draft = "ngram" if is_remote else automatic_draft(path_of(session), bundled=bundled)
    return _IN_WORDS.get(draft, str(draft))
