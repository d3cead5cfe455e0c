"""The local copy of a text that a target elsewhere generates."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from typing import Any, Literal

from specllama import _core
from specllama._core import Chunk, TokenLogprobs
from specllama.remote.answer import Answer, Asked, Description
from specllama.remote.sampling import named

_DEFAULT_MAX_TOKENS = 256


class Text:
    """A prompt, its options, and what has been received of its generation.

    Args:
        prompt: Token ids.
        options: Options of the generation.
        target: The description of the target.

    Attributes:
        seed: The seed; drawn here if none was given, so that a repeated opening gives the same
            tokens.
        generated: Token ids received so far.
        chunks: Chunks that were received but not read.
        finish_reason: Why the text ended; None if it has not, or was ended early.
        stop_string: The stop string that ended the text; "" if none has.
        done: Whether the text has ended, for whatever reason.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        options: _core.GenerateOptions,
        target: Description,
    ) -> None:
        self._vocabulary = target.vocabulary
        self._n_vocab = target.n_vocab
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
        self._held = ""  # text after these, in which a stop string may begin
        self._lock = threading.Lock()  # rounds and readers may be in different threads
        self._n_chunks = 0
        self._n_opened = 0  # generated tokens sent with the last opening
        room = target.n_ctx - len(self.prompt)
        most = options.max_tokens
        if most is None:
            most = min(_DEFAULT_MAX_TOKENS, room)
        self._most = room if most < 0 else min(most, room)

    @property
    def n_tokens(self) -> int:
        """Number of tokens of the prompt and the generated text."""
        return len(self.prompt) + len(self.generated)

    @property
    def n_left(self) -> int:
        """Most tokens that may still be generated."""
        return self._most - len(self.generated)

    @property
    def text(self) -> str:
        """The generated text so far."""
        return "".join([*self._parts, self._held])

    def opening(self) -> dict[str, Any]:
        """Return the body of a request to a server to begin or continue this text."""
        # A server gives no log-probabilities of tokens that it is sent. So if they are wanted, only
        # tokens whose chunks have come are sent: a stop string may hold back the last chunks.
        wants_logprobs = self.options.sampling.logprobs >= 0
        self._n_opened = self._n_chunks if wants_logprobs else len(self.generated)
        return {
            "vocabulary": self._vocabulary,
            "prompt": self.prompt,
            "generated": self.generated[: self._n_opened],
            "options": _options(self.options, self.seed),
        }

    def asked(self, n_drafted: int | None, *, opens: bool = False) -> Asked:
        """Return what the next answer is to: an opening (None), or a draft of so many tokens."""
        n_before = self._n_opened if opens else len(self.generated)
        return Asked(
            n_vocab=self._n_vocab,
            n_before=n_before,
            n_left=self._most - n_before,
            n_logprobs=self.options.sampling.logprobs,
            stop=list(self.options.stop),
            n_drafted=n_drafted,
            opens=opens,
        )

    def hear(self, answer: Answer, *, again: bool) -> list[int]:
        """Take in an answer and return those of its tokens that are new. again: the answer is to an
        opening, perhaps a repeated one, so its chunks begin at the beginning of the text."""
        n_known = len(self.generated) - self._n_opened if again else 0
        with self._lock:
            if again:
                del self.generated[self._n_opened :]
            self.generated += answer.tokens
            del self.generated[answer.n :]
            for chunk in answer.chunks[self._n_chunks :] if again else answer.chunks:
                self._add(chunk)
            self._held = answer.held
            if answer.done:
                self.stop_string = answer.stop_string
                self._end(answer.finish_reason)
        return answer.tokens[n_known:]

    def take(self) -> tuple[list[Chunk], bool]:
        """Return the chunks not yet taken, and whether they are the last as the text has ended."""
        with self._lock:
            chunks, self.chunks = self.chunks, []
            return chunks, self.done

    def end(self, reason: Literal["stop", "length"] | None) -> None:
        """End the text, for this reason; None: it was ended early."""
        with self._lock:
            self._end(reason)

    def _end(self, reason: Literal["stop", "length"] | None) -> None:
        self.done = True
        self.finish_reason = reason
        if reason is not None:  # the reason is reported by a last chunk
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


_APART = frozenset((
    "logit_bias", "logprobs", "seed", "acceptance", "lenience", "grammar", "grammar_syntax",
    "grammar_triggers",
    "reasoning_budget", "reasoning_opening", "reasoning_closing",
))  # fmt: skip
"""Options that are written in another form, only where they are given, or that concern drafts."""


def _options(options: _core.GenerateOptions, seed: int) -> dict[str, Any]:
    """Return the options that concern the target, by their names in `GenerateOptions`."""
    sampling = options.sampling
    wanted = {name: value for name, value in named(sampling).items() if name not in _APART}
    wanted["seed"] = seed
    if options.max_tokens is not None:
        wanted["max_tokens"] = None if options.max_tokens < 0 else options.max_tokens
    if not options.cache_prompt:
        wanted["cache_prompt"] = False
    if options.stop:
        wanted["stop"] = options.stop
    if sampling.logit_bias:
        wanted["logit_bias"] = [
            (token, None if bias == float("-inf") else bias) for token, bias in sampling.logit_bias
        ]
    if sampling.logprobs >= 0:
        wanted["logprobs"] = sampling.logprobs
    if sampling.reasoning_budget >= 0:
        wanted["reasoning_budget"] = sampling.reasoning_budget
    if sampling.grammar:
        is_regex = sampling.grammar_syntax == _core.GrammarSyntax.regex
        wanted["regex" if is_regex else "grammar"] = sampling.grammar
        if sampling.grammar_triggers:
            wanted["grammar_triggers"] = sampling.grammar_triggers
    return wanted
