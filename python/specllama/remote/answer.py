"""What a target elsewhere answers, as typed values in their ranges."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from specllama._core import Chunk, TokenLogprobs
from specllama.formats.wire import MOST_TOLD
from specllama.remote.fields import Fields

_MOST_TOKENS = 2**31 - 1
_MOST_SECONDS = 86400.0
_LONGEST_CURVE = 1024
_LONGEST_NAME = 4096
_LONGEST_TEMPLATE = 1 << 20
_LONGEST_TEXT = 1 << 16
"""In characters, of a chunk: a token's text, and what a stop string held back before it."""
_HASH = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True)
class Description:
    """The description of a target: the fields of `GET /v1/verify` (docs/remote.md)."""

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
    longest_draft: int
    guesses: int
    most_nodes: int

    @classmethod
    def read(cls, fields: Fields) -> Description:
        """Return the description in an answer. Raises RemoteError."""
        n_vocab = fields.integer("n_vocab", 1, _MOST_TOKENS)
        longest = fields.integer("longest_draft", 0, _MOST_TOKENS)
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
            longest_draft=longest,
            # A server that does not know branches does not mention them.
            guesses=fields.integer("guesses", 0, _MOST_TOKENS, 1),
            most_nodes=fields.integer("most_nodes", 0, _MOST_TOKENS, longest),
        )


@dataclass(frozen=True)
class Asked:
    """What an answer is to: it bounds the answer.

    Attributes:
        n_vocab: Size of the target's vocabulary.
        n_before: Tokens of the generation that the server had.
        n_left: Most tokens that may still come.
        n_logprobs: Most log-probabilities at a position, beside the token's own; below 0: none.
        stop: The stop strings.
        n_drafted: Tokens of the draft; None: there is none, since it opens a generation.
        opens: Whether it opens a generation.
    """

    n_vocab: int
    n_before: int
    n_left: int
    n_logprobs: int
    stop: list[str]
    n_drafted: int | None
    opens: bool


@dataclass(frozen=True)
class Answer:
    """The results of a round, or of several: the fields that docs/remote.md has.

    Attributes:
        n_reused: Tokens of the prompt that the target's KV memory held; known at the end.
    """

    tokens: list[int]
    n: int
    chunks: list[Chunk]
    seconds: float
    done: bool
    held: str = ""
    n_rounds: int = 1
    n_drafted: int = 0
    n_accepted: int = 0
    finish_reason: Literal["stop", "length"] | None = None
    stop_string: str = ""
    exact: bool = False
    n_reused: int = 0

    @classmethod
    def read(cls, fields: Fields, asked: Asked) -> Answer:
        """Return the results in an answer. Raises RemoteError."""
        done = fields.flag("done")
        n_drafted = asked.n_drafted
        most = min(asked.n_left, n_drafted + 1) if n_drafted is not None else asked.n_left
        tokens = fields.tokens("tokens", asked.n_vocab, most=max(most, 0))
        if not tokens and not done and not asked.opens:
            fields.refuse("tokens", tokens, "one token at least")
        n_after = asked.n_before + len(tokens)
        # Only a stop string takes tokens off again.
        n = fields.integer("n", 0 if done else n_after, n_after)
        n_rounds = fields.integer("rounds", 1, len(tokens) + 1)
        most_drafted = n_rounds * MOST_TOLD if n_drafted is None else n_drafted
        drafted = fields.integer("drafted", 0, most_drafted)
        accepted = fields.integer("accepted", 0, drafted)
        answer = cls(
            tokens=tokens,
            n=n,
            chunks=[_chunk(fields, one, asked) for one in fields.items("chunks", most=n_after + 1)],
            seconds=fields.number("seconds", 0, _MOST_SECONDS),
            done=done,
            held=fields.text("held", _LONGEST_TEXT, ""),
            n_rounds=n_rounds,
            n_drafted=drafted,
            n_accepted=accepted,
        )
        return _ended(answer, fields, asked) if done else answer


def _ended(answer: Answer, fields: Fields, asked: Asked) -> Answer:
    """Return the answer with the fields that there are at the end of a generation."""
    reason = fields.text("finish_reason", _LONGEST_NAME)
    if reason not in ("stop", "length"):
        fields.refuse("finish_reason", reason, '"stop" or "length"')
    stop_string = fields.text("stop_string", _LONGEST_TEXT, "")
    if stop_string and stop_string not in asked.stop:
        fields.refuse("stop_string", stop_string, "one of the stop strings")
    return replace(
        answer,
        finish_reason=cast(Literal["stop", "length"], reason),
        stop_string=stop_string,
        exact=fields.flag("exact"),
        n_reused=fields.integer("reused", 0, _MOST_TOKENS),
    )


def _chunk(fields: Fields, wire: Any, asked: Asked) -> Chunk:
    """Return the chunk that `chunk_to_wire` was given, without its finish reason."""
    if not isinstance(wire, list) or not 3 <= len(wire) <= 4:
        fields.refuse("chunks", wire, "a list of lists of three or four")
    token, text, from_draft, *rest = wire
    return Chunk(
        text=fields.as_text("chunks", text, _LONGEST_TEXT),
        token=None if token is None else fields.as_integer("chunks", token, 0, asked.n_vocab - 1),
        from_draft=bool(fields.as_integer("chunks", from_draft, 0, 1)),
        logprobs=_logprobs(fields, rest[0], asked) if rest else None,
        finish_reason=None,
    )


def _logprobs(fields: Fields, wire: Any, asked: Asked) -> TokenLogprobs:
    name = "chunks"
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
    """Return a part of the field `name` that is the logarithm of a probability."""
    return fields.as_number(name, value, float("-inf"), 0.01)  # rounding may exceed 0
