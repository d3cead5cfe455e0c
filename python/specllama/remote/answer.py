"""The answers of a remote target, as typed values in their ranges."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, cast

from specllama._core import TokenLogprobs, VerifyAnswer, VocabularyTable
from specllama.remote.fields import Fields

_MOST_TOKENS = 2**31 - 1
_MOST_SECONDS = 86400.0
_LONGEST_CURVE = 1024
_LONGEST_NAME = 4096
_LONGEST_TEMPLATE = 1 << 20
_LONGEST_TEXT = 1 << 16
"""In characters, of a token."""
_HASH = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True)
class Description:
    """The description of a target: the fields of `GET /v1/verify` (verify-protocol.md)."""

    description: str
    kernels: str
    n_ctx: int
    n_vocab: int
    n_threads: int
    vocabulary: str
    bos: int
    eos: int
    fim: tuple[int, ...]
    chat_template: str | None
    decode_seconds: list[float]
    max_draft_length: int
    max_candidates: int
    max_draft_tokens: int

    @classmethod
    def read(cls, fields: Fields) -> Description:
        """Read the description from an answer. Raises RemoteError."""
        n_vocab = fields.integer("n_vocab", 1, _MOST_TOKENS)
        longest = fields.integer("max_draft_length", 0, _MOST_TOKENS)
        vocabulary = fields.text("vocabulary", 16)
        if not _HASH.fullmatch(vocabulary):
            fields.refuse("vocabulary", vocabulary, "16 hexadecimal digits")
        fim = fields.items("fim", most=5)
        if len(fim) != 5:
            fields.refuse("fim", fim, "five token ids")
        has_template = "chat_template" in fields
        return cls(
            description=fields.text("description", _LONGEST_NAME),
            kernels=fields.text("kernels", _LONGEST_NAME),
            n_ctx=fields.integer("n_ctx", 1, _MOST_TOKENS),
            n_vocab=n_vocab,
            n_threads=fields.integer("n_threads", 0, _MOST_TOKENS),
            vocabulary=vocabulary,
            bos=fields.integer("bos", -1, n_vocab - 1),
            eos=fields.integer("eos", -1, n_vocab - 1),
            fim=tuple(fields.as_integer("fim", one, -1, n_vocab - 1) for one in fim),
            chat_template=(
                fields.text("chat_template", _LONGEST_TEMPLATE) if has_template else None
            ),
            decode_seconds=[
                fields.as_number("decode_seconds", one, 0, _MOST_SECONDS)
                for one in fields.items("decode_seconds", most=_LONGEST_CURVE)
            ],
            max_draft_length=longest,
            # A server without support for branches does not send these fields.
            max_candidates=fields.integer("max_candidates", 0, _MOST_TOKENS, 1),
            max_draft_tokens=fields.integer("max_draft_tokens", 0, _MOST_TOKENS, longest),
        )


def read_vocabulary(fields: Fields, n_vocab: int) -> VocabularyTable:
    """Read the answer to `GET /v1/verify/vocabulary`. Raises RemoteError."""
    pieces = fields.items("pieces", most=n_vocab)
    if len(pieces) != n_vocab:
        fields.refuse("pieces", pieces, f"the texts of {n_vocab} tokens")
    fingerprint = fields.text("fingerprint", 16)
    if not _HASH.fullmatch(fingerprint):
        fields.refuse("fingerprint", fingerprint, "16 hexadecimal digits")
    return VocabularyTable(
        pieces=[_bytes(fields, one) for one in pieces],
        hidden=fields.tokens("hidden", n_vocab, most=n_vocab),
        ends=fields.tokens("ends", n_vocab, most=n_vocab),
        fingerprint=int(fingerprint, 16),
    )


def _bytes(fields: Fields, piece: Any) -> bytes:
    text = fields.as_text("pieces", piece, _LONGEST_TEXT)
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        fields.refuse("pieces", piece, "bytes as characters below 256")


@dataclass(frozen=True)
class Asked:
    """The data of a request that limit its answer.

    Attributes:
        n_vocab: Size of the target's vocabulary.
        n_left: Maximum number of tokens until the end of the generation.
        n_logprobs: Most log-probabilities at a position, in addition to the token's own; below 0:
            none.
        n_drafted: Tokens of the draft; None: the request opens a generation, without a draft.
    """

    n_vocab: int
    n_left: int
    n_logprobs: int
    n_drafted: int | None


def read_answer(fields: Fields, asked: Asked) -> VerifyAnswer:
    """Read the results of a round, as in verify-protocol.md. Raises RemoteError."""
    done = fields.flag("done")
    n_drafted = asked.n_drafted
    most = asked.n_left if n_drafted is None else min(asked.n_left, n_drafted + 1)
    tokens = fields.tokens("tokens", asked.n_vocab, most=max(most, 0))
    if not tokens and not done:
        fields.refuse("tokens", tokens, "at least one token")
    logprobs: list[TokenLogprobs] = []
    if asked.n_logprobs >= 0:
        of_each = fields.items("logprobs", most=len(tokens)) if tokens else []
        if len(of_each) != len(tokens):
            fields.refuse("logprobs", of_each, f"those of {len(tokens)} tokens")
        logprobs = [_logprobs(fields, one, asked) for one in of_each]
    reason: Literal["stop", "length"] | None = None
    if done:
        given = fields.text("finish_reason", _LONGEST_NAME)
        if given not in ("stop", "length"):
            fields.refuse("finish_reason", given, '"stop" or "length"')
        reason = cast(Literal["stop", "length"], given)
    return VerifyAnswer(
        tokens=tokens,
        logprobs=logprobs,
        seconds=fields.number("seconds", 0, _MOST_SECONDS),
        n_verified=fields.integer("drafted", 0, n_drafted or 0),
        finish_reason=reason,
        exact=fields.flag("exact") if done else False,
        n_reused=fields.integer("reused", 0, _MOST_TOKENS) if done else 0,
    )


def _logprobs(fields: Fields, wire: Any, asked: Asked) -> TokenLogprobs:
    name = "logprobs"
    if not isinstance(wire, list) or len(wire) != 3 or not isinstance(wire[2], list):
        fields.refuse(name, wire, "log-probabilities: a token, its own, and a list")
    token, logprob, top = wire
    if len(top) > max(asked.n_logprobs, 0) or not all(
        isinstance(one, list) and len(one) == 2 for one in top
    ):
        fields.refuse(name, top, f"at most {max(asked.n_logprobs, 0)} pairs")
    return TokenLogprobs(
        token=fields.as_integer(name, token, 0, asked.n_vocab - 1),
        logprob=as_logprob(fields, name, logprob),
        top=[
            (fields.as_integer(name, one, 0, asked.n_vocab - 1), as_logprob(fields, name, p))
            for one, p in top
        ],
    )


def as_logprob(fields: Fields, name: str, value: Any) -> float:
    """Return a part of the field `name` that must be the logarithm of a probability."""
    return fields.as_number(name, value, float("-inf"), 0.01)  # rounding may exceed 0
