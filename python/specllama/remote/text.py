"""What is known here of a text that a target elsewhere writes."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from typing import Any, Literal

from specllama import _check, _core
from specllama._core import Chunk, TokenLogprobs
from specllama.formats.wire import chunk_from_wire

_DEFAULT_MAX_TOKENS = 256


class Text:
    """A prompt, its options, and what has come so far.

    Args:
        prompt: Token ids.
        options: Of the generation.
        n_ctx: Tokens that the target's context holds.
        vocabulary: The hash of the target's vocabulary.

    Attributes:
        seed: Given, or drawn here: who begins again gets the same tokens.
        generated: Token ids that have come.
        chunks: Chunks that have come and were not read.
        finish_reason: Why it ended, if it has.
        stop_string: That which ended it; "" if none has.
        done: It has ended, for whatever reason.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        options: _core.GenerateOptions,
        n_ctx: int,
        vocabulary: str,
    ) -> None:
        self._vocabulary = vocabulary
        self.prompt = [int(token) for token in prompt]
        self.options = options
        given = options.sampling.seed
        self.seed = secrets.randbits(64) if given is None else given
        self.generated: list[int] = []
        self.chunks: list[Chunk] = []
        self.logprobs: list[TokenLogprobs] = []
        self.finish_reason: Literal["stop", "length"] | None = None
        self.stop_string = ""
        self.done = False
        self._parts: list[str] = []
        self._held = ""  # behind these: a stop string may begin with it
        self._lock = threading.Lock()  # rounds and readers may be in different threads
        self._n_chunks = 0
        self._n_opened = 0  # of the generated tokens that the server was given
        room = n_ctx - len(self.prompt)
        most = options.max_tokens
        if most is None:
            most = min(_DEFAULT_MAX_TOKENS, room)
        self._most = room if most < 0 else min(most, room)

    @property
    def n_tokens(self) -> int:
        """Tokens of prompt and text."""
        return len(self.prompt) + len(self.generated)

    @property
    def n_left(self) -> int:
        """Tokens that may still come."""
        return self._most - len(self.generated)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join([*self._parts, self._held])

    def opening(self) -> dict[str, Any]:
        """Return what a server is asked that is to go on with it."""
        # Of tokens that it is given it has no log-probabilities; those of the last ones have not
        # come when their text may be part of a stop string.
        wants_logprobs = self.options.sampling.logprobs >= 0
        self._n_opened = self._n_chunks if wants_logprobs else len(self.generated)
        return {
            "vocabulary": self._vocabulary,
            "prompt": self.prompt,
            "generated": self.generated[: self._n_opened],
            "options": _options(self.options, self.seed),
        }

    def hear(self, told: dict[str, Any], *, again: bool) -> list[int]:
        """Take in an answer, and return its tokens, of those only what is new. again: it is the
        first of a generation that was begun again, whose chunks begin at the beginning."""
        tokens = [_check.integer("a token", token, low=0) for token in told["tokens"]]
        n_known = len(self.generated) - self._n_opened if again else 0
        chunks = [chunk_from_wire(one) for one in told["chunks"]]
        with self._lock:
            if again:
                del self.generated[self._n_opened :]
            self.generated += tokens
            del self.generated[told["n"] :]
            for chunk in chunks[self._n_chunks :] if again else chunks:
                self._add(chunk)
            self._held = str(told.get("held", ""))
            if told["done"]:
                self.stop_string = str(told.get("stop_string", ""))
                self._end(told["finish_reason"])
        return tokens[n_known:]

    def take(self) -> tuple[list[Chunk], bool]:
        """Return the chunks not yet taken, and whether it has ended and these are the last."""
        with self._lock:
            chunks, self.chunks = self.chunks, []
            return chunks, self.done

    def end(self, reason: Literal["stop", "length"] | None) -> None:
        """End it."""
        with self._lock:
            self._end(reason)

    def _end(self, reason: Literal["stop", "length"] | None) -> None:
        self.done = True
        self.finish_reason = reason
        if reason is not None:  # a reason needs a chunk to stand on
            last = self.chunks.pop() if self.chunks else None
            self.chunks.append(
                Chunk(
                    text=last.text if last else "",
                    token=last.token if last else None,
                    from_draft=last.from_draft if last else False,
                    logprobs=last.logprobs if last else None,
                    finish_reason=reason,
                )
            )

    def _add(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        self._parts.append(chunk.text)
        self._n_chunks += 1
        if chunk.logprobs is not None:
            self.logprobs.append(chunk.logprobs)


def _options(options: _core.GenerateOptions, seed: int) -> dict[str, Any]:
    """Return the options that concern the target, by the names of `GenerateOptions`."""
    sampling = options.sampling
    named: dict[str, Any] = {
        name: getattr(sampling, name)
        for name in (
            "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "frequency_penalty",
            "presence_penalty", "penalty_last_n", "processed_logprobs",
        )
    }  # fmt: skip
    named["seed"] = seed
    if options.max_tokens is not None:
        named["max_tokens"] = None if options.max_tokens < 0 else options.max_tokens
    if options.stop:
        named["stop"] = options.stop
    if sampling.logit_bias:
        named["logit_bias"] = [
            (token, None if bias == float("-inf") else bias) for token, bias in sampling.logit_bias
        ]
    if sampling.logprobs >= 0:
        named["logprobs"] = sampling.logprobs
    if sampling.grammar:
        named["grammar"] = sampling.grammar
        if sampling.grammar_triggers:
            named["grammar_triggers"] = sampling.grammar_triggers
    return named
