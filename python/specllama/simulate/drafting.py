"""The drafts of drafters at every position of a text, and how much of them is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specllama._core.plan import Evidence, NGramFollower

MAX_DRAFT = 64
"""Maximum number of tokens of a draft, as in a session."""


@dataclass(frozen=True)
class Drafts:
    """One drafter's drafts for a text, one at each position.

    Attributes:
        n_prompt: Tokens before the text.
        length: Tokens of the draft at each position, shape [n_tokens].
        right: How many of these, from the first on, are the tokens of the text, shape [n_tokens].
        evidence: The evidence for each token of each draft; empty for drafters that are simulated
            without a planner.
    """

    n_prompt: int
    length: NDArray[np.int64]
    right: NDArray[np.int64]
    evidence: Sequence[list[Evidence]]

    def __len__(self) -> int:
        return len(self.length)


def ngram_drafts(prompt: Sequence[int], text: Sequence[int]) -> Drafts:
    """Return the drafts of a session's n-gram drafter ("ngram"), with their full lengths."""
    follower = NGramFollower()
    follower.append_batch(prompt)
    drafts, evidence = [], []
    for token in text:
        proposed = follower.draft(MAX_DRAFT)
        drafts.append([one for one, _ in proposed])
        evidence.append([known for _, known in proposed])
        follower.append(token)
    return _judge(len(prompt), text, drafts, evidence)


def lookup_drafts(
    prompt: Sequence[int], text: Sequence[int], *, ngram_size: int, n_draft: int
) -> Drafts:
    """Return the drafts of prompt lookup: the tokens after the earliest occurrence of the last
    `ngram_size` tokens, else of the last `ngram_size` - 1, and so on.

    (Saxena, "Prompt Lookup Decoding", 2023, as llama-cpp-python's LlamaPromptLookupDecoding.)

    Args:
        prompt: Token ids before the text.
        text: Token ids.
        ngram_size: Tokens to look for.
        n_draft: Maximum number of tokens to draft.
    """
    tokens = [*prompt, *text]
    # [size][n-gram]: index of the token after the first occurrence of the n-gram.
    first: list[dict[tuple[int, ...], int]] = [{} for _ in range(ngram_size + 1)]
    drafts: list[list[int]] = []
    for i in range(len(tokens)):
        for size in range(1, min(ngram_size, i) + 1):
            # The n-gram that ends before token i - 1 has this token as its successor.
            if i - 1 >= size:
                first[size].setdefault(tuple(tokens[i - 1 - size : i - 1]), i - 1)
        if i < len(prompt):
            continue
        draft: list[int] = []
        for size in range(min(ngram_size, i - 1), 0, -1):
            start = first[size].get(tuple(tokens[i - size : i]))
            if start is not None:
                draft = tokens[start : min(start + n_draft, i)]
                break
        drafts.append(draft)
    return _judge(len(prompt), text, drafts, [])


def ngram_simple_drafts(
    prompt: Sequence[int], text: Sequence[int], *, ngram_size: int, n_draft: int
) -> Drafts:
    """Return the drafts of llama.cpp's ngram-simple: the tokens after the latest earlier occurrence
    of the last `ngram_size` tokens, if at least `ngram_size` tokens follow it.

    (common_ngram_simple_draft of llama.cpp's common/ngram-map.cpp.)

    Args:
        prompt: Token ids before the text.
        text: Token ids.
        ngram_size: Tokens to look for.
        n_draft: Maximum number of tokens to draft.
    """
    tokens = [*prompt, *text]
    places: dict[tuple[int, ...], int] = {}
    drafts: list[list[int]] = []
    for i in range(len(tokens)):
        # llama.cpp keeps the last token separately, and searches the others except the first.
        n_known = i - 1
        place = n_known - ngram_size - 1
        if place > 0:
            places[tuple(tokens[place : place + ngram_size])] = place
        if i < len(prompt):
            continue
        draft: list[int] = []
        found = places.get(tuple(tokens[max(i - ngram_size, 0) : i]))
        if found is not None and n_known > ngram_size + n_draft + 1:
            start = found + ngram_size
            draft = tokens[start : min(start + n_draft, n_known)]
        drafts.append(draft if len(draft) >= ngram_size else [])
    return _judge(len(prompt), text, drafts, [])


def ngram_map_drafts(
    prompt: Sequence[int], text: Sequence[int], *, ngram_size: int, n_draft: int
) -> Drafts:
    """Return the drafts of llama.cpp's ngram-map-k: the `n_draft` tokens after an earlier
    occurrence of the last `ngram_size` tokens with at least that many tokens after it. It is the
    latest occurrence in the prompt, else the first in the text.

    (common_ngram_map_draft of llama.cpp's common/ngram-map.cpp. The original also limits a draft
    after an n-gram to the number of tokens accepted after it the last time, which depends on the
    rounds.)

    Args:
        prompt: Token ids before the text.
        text: Token ids.
        ngram_size: Tokens to look for.
        n_draft: Tokens to draft.
    """
    tokens = [*prompt, *text]
    places: dict[tuple[int, ...], int] = {}
    drafts: list[list[int]] = []
    for i in range(len(tokens)):
        n_known = i - 1
        place = n_known - ngram_size - n_draft - 1
        if place > 0:
            key = tuple(tokens[place : place + ngram_size])
            in_prompt = n_known <= len(prompt)
            places[key] = place if in_prompt else places.get(key, place)
        if i < len(prompt):
            continue
        draft: list[int] = []
        found = places.get(tuple(tokens[max(i - ngram_size, 0) : i]))
        if found is not None and n_known >= 2 * ngram_size + n_draft:
            draft = tokens[found + ngram_size : found + ngram_size + n_draft]
        drafts.append(draft)
    return _judge(len(prompt), text, drafts, [])


def _judge(
    n_prompt: int,
    text: Sequence[int],
    drafts: Sequence[Sequence[int]],
    evidence: Sequence[list[Evidence]],
) -> Drafts:
    right = np.zeros(len(text), dtype=np.int64)
    for i, draft in enumerate(drafts):
        for drafted, token in zip(draft, text[i:], strict=False):
            if drafted != token:
                break
            right[i] += 1
    length = np.array([len(draft) for draft in drafts], dtype=np.int64)
    return Drafts(n_prompt, length, right, evidence)
