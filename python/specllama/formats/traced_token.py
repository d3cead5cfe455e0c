"""A token of a round, and whether it was accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from specllama._core import DraftedToken

Kind = Literal["accepted", "rejected", "replacement", "bonus", "plain", "forced", "cut"]


@dataclass(frozen=True)
class TracedToken:
    """A token that a round drafted or chose.

    Attributes:
        kind: "accepted"; "rejected", by the target or because it followed a rejected token;
            "replacement", the target's own token instead of a rejected one; "bonus", its own token
            after a completely accepted draft; "plain", its own token if nothing was drafted;
            "forced", the only token that the grammar allowed, not verified; "cut", a token after
            the end of the generation.
        token: Token id.
        text: Its text, with U+FFFD for a part of a character; the id in angle brackets if it has no
            text.
        drafted: Its drafter and evidence; None for the target's own token.
        forks: Whether it is an alternative at an earlier position, and does not follow the token
            before it in the round.
    """

    kind: Kind
    token: int
    text: str
    drafted: DraftedToken | None
    forks: bool = False

    @property
    def name(self) -> str:
        """The kind; for an accepted token its drafter instead, as in `Stats.by_drafter`."""
        if self.kind == "accepted" and self.drafted is not None:
            return self.drafted.drafter
        return self.kind

    def to_dict(self) -> dict[str, Any]:
        """Return all data of the token as a dict of JSON values."""
        known: dict[str, Any] = {"kind": self.kind, "token": self.token, "text": self.text}
        if self.drafted is not None:
            known["drafter"] = self.drafted.drafter
            known["length"] = self.drafted.length
            known["confidence"] = self.drafted.confidence
            known["parent"] = self.drafted.parent
        return known
