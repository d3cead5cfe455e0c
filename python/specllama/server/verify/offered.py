"""A draft as clients send it."""

from __future__ import annotations

from specllama import Handle
from specllama.formats.wire import MOST_TOLD
from specllama.server.error import ApiError
from specllama.server.fields import Fields


class Offered:
    """A draft, and its branches if it has any: `[n, token, token, ...]` are tokens that may come
    after the draft's first n tokens, in place of its others. Raises ApiError.

    Args:
        fields: The body's fields.
        most: Most tokens of the draft, without branches.
    """

    def __init__(self, fields: Fields, most: int) -> None:
        self._tokens = ids_of(fields, "draft")
        if len(self._tokens) > most:
            raise ApiError(
                400, f"A draft has {most} tokens at most, not {len(self._tokens)}.", param="draft"
            )
        given = fields.any("branches")
        if given is None:
            given = []
        if not isinstance(given, list) or not all(map(_is_branch, given)):
            fields.refuse("branches", "a list of lists: after how many tokens of the draft, and "
                          "the token ids that may follow there")  # fmt: skip
        self._branches = [(depth, branch) for depth, *branch in given]
        for depth, _ in self._branches:
            if not 0 <= depth <= len(self._tokens):
                raise ApiError(
                    400,
                    f"A branch leaves the draft after 0 to {len(self._tokens)} of its tokens, not "
                    f"after {depth}.",
                    param="branches",
                )
        n_told = len(self._tokens) + sum(len(branch) for _, branch in self._branches)
        if n_told > MOST_TOLD:
            raise ApiError(
                400,
                f"A draft and its branches have {MOST_TOLD} tokens at most, not {n_told}.",
                param="branches" if self._branches else "draft",
            )

    def leave(self, handle: Handle, n_before: int, confidence: list[float]) -> None:
        """Offer the draft to a generation. Raises what `Handle.offer` raises."""
        handle.offer(n_before, self._tokens, confidence, self._branches)


def ids_of(fields: Fields, name: str) -> list[int]:
    """Return the token ids in a field; [] if it was left out. Raises ApiError."""
    ids = fields.any(name)
    if ids is None or ids == "":
        return []
    if not _are_ids(ids):
        fields.refuse(name, "a list of token ids")
    return list(ids)


def _is_branch(given: object) -> bool:
    return _are_ids(given) and len(given) > 1  # type: ignore[arg-type]


def _are_ids(given: object) -> bool:
    return isinstance(given, list) and all(type(one) is int for one in given)
