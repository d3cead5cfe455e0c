"""A model, and the drafter that drafts for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specllama._closing import Closing
from specllama.session import SpecSession

_NOBODY = "none"


class OpenModel(Closing):
    """A session that is opened again when another drafter is wanted.

    Args:
        options: Options of SpecSession.

    Attributes:
        session: The session; another one after `redraft`.

    Raises what SpecSession does, and ModelError if the model has no chat template.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        self.session = self._opened()

    @property
    def drafter(self) -> str:
        """Who drafts, in words."""
        draft = self._options["draft"]
        if draft is None:
            return "nobody"
        return "n-grams" if draft in ("auto", "ngram") else str(draft)

    def redraft(self, draft: str) -> None:
        """Change the drafter: "none", "ngram", or a draft model as for SpecSession.

        Raises what SpecSession does; then the old drafter is back. The KV memory is lost either
        way, and the conversation is decoded again with the next prompt.
        """
        before = self._options
        self.session.close()  # so that only one session takes memory at a time
        self._options = {**before, "draft": None if draft == _NOBODY else draft}
        try:
            self.session = self._opened()
        except BaseException:
            self._options = before
            self.session = self._opened()
            raise

    def close(self) -> None:
        self.session.close()

    def _opened(self) -> SpecSession:
        session = SpecSession(**self._options)
        try:
            _ = session.chat_template  # raises now if there is none
        except BaseException:
            session.close()
            raise
        return session
