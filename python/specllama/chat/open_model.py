"""A model, and the drafter that drafts for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specllama._closing import Closing
from specllama.model.opening import automatic_draft
from specllama.session import SpecSession

_NOBODY = "none"
_IN_WORDS = {
    None: "nobody",
    "ngram": "n-grams",
    "mtp": "the model's own layers of multi-token prediction",
}


class OpenModel(Closing):
    """A session that is opened again when another drafter is wanted.

    Args:
        options: Options of SpecSession.

    Attributes:
        session: The session; another one after `redraft`.
        drafter: Who drafts in it, in words.

    Raises what SpecSession does, and ModelError if the model has no chat template.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        self._open()

    def redraft(self, draft: str) -> None:
        """Change the drafter: "none", or "auto", "mtp", "ngram" or a draft model as for
        SpecSession.

        Raises what SpecSession does; then the old drafter is back. The KV memory is lost either
        way, and the conversation is decoded again with the next prompt.
        """
        before = self._options
        self.session.close()  # so that only one session takes memory at a time
        self._options = {**before, "draft": None if draft == _NOBODY else draft}
        try:
            self._open()
        except BaseException:
            self._options = before
            self._open()
            raise

    def close(self) -> None:
        self.session.close()

    def _open(self) -> None:
        session = SpecSession(**self._options)
        try:
            _ = session.chat_template  # raises now if there is none
            self.drafter = self._drafter_of(session)
        except BaseException:
            session.close()
            raise
        self.session = session

    def _drafter_of(self, session: SpecSession) -> str:
        draft = self._options["draft"]
        if draft == "auto":
            is_remote = self._options.get("target") is not None
            bundled = self._options["model"] is None
            draft = "ngram" if is_remote else automatic_draft(session.path, bundled=bundled)
        return _IN_WORDS.get(draft, str(draft))
