"""Reads the draft in a request."""

from __future__ import annotations

from specllama import _core
from specllama.formats.wire import MOST_DRAFTED, MOST_TOLD
from specllama.server.body.fields import Fields
from specllama.server.error import ApiError


def draft_of(fields: Fields, n_vocab: int) -> _core.RequestDraft:
    """Return the draft in a body, with its branches. A branch `[n, token, token, ...]` has tokens
    that may follow the draft's first n tokens instead of its others. Raises ApiError."""
    tokens = ids_of(fields, "draft")
    if len(tokens) > MOST_DRAFTED:
        raise ApiError(
            400,
            f"A draft may have at most {MOST_DRAFTED} tokens, not {len(tokens)}.",
            param="draft",
        )
    given = fields.any("branches")
    if given is None:
        given = []
    if not isinstance(given, list) or not all(map(_is_branch, given)):
        fields.refuse("branches", "a list of lists: a number of the draft's tokens, and "
                      "the token ids that may follow them")  # fmt: skip
    branches = [(depth, branch) for depth, *branch in given]
    for depth, _ in branches:
        if not 0 <= depth <= len(tokens):
            raise ApiError(
                400,
                f"A branch must leave the draft after 0 to {len(tokens)} of its tokens, not after "
                f"{depth}.",
                param="branches",
            )
    n_told = len(tokens) + sum(len(branch) for _, branch in branches)
    if n_told > MOST_TOLD:
        raise ApiError(
            400,
            f"A draft and its branches may have at most {MOST_TOLD} tokens, not {n_told}.",
            param="branches" if branches else "draft",
        )
    for name, ids in (("draft", tokens), *(("branches", branch) for _, branch in branches)):
        for token in ids:
            if not 0 <= token < n_vocab:
                raise ApiError(
                    400, f"Token {token} is out of range: the vocabulary has the tokens 0 to "
                    f"{n_vocab - 1}.", param=name,
                )  # fmt: skip
    return _core.RequestDraft(tokens=tokens, branches=branches)


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
