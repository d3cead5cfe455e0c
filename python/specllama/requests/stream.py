"""A generation, while it runs and after it has ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Literal, Protocol, TypeVar

from specllama import _check, _core
from specllama._closing import Closing
from specllama._core import Chunk, RoundTrace, Stats, TokenLogprobs
from specllama._process import ProcessGuard
from specllama.errors import ClosedError
from specllama.formats.statistics import in_words
from specllama.formats.trace import Trace
from specllama.requests.failing_drafter import warn_of_failing_drafter
from specllama.requests.tool_call import ToolCall

FinishReason = Literal["stop", "length"]

Chunks = TypeVar("Chunks", list[Chunk], list[Chunk] | None)


@dataclass(frozen=True, repr=False)
class Generation:
    """The result of a request, complete or so far.

    Attributes:
        text: The generated text, without the stop string that ended it; with `echo`, the prompt
            before it.
        tokens: The generated token ids, without an end-of-generation token. A token that reaches
            into the stop string is left out.
        finish_reason: "stop" (end-of-generation token or stop string), "length" (max_tokens, or
            the context is full), or None if the generation was interrupted or still runs.
        stop_string: The stop string that ended the generation, or None. If several begin at the
            same position, it is the one given first.
        stats: Counts and times of the generation.
        logprobs: One entry per token, if requested; else empty.
        trace: The record of every round, if `trace=True`; else None.
        message: For a chat with tools: the answer as a message of the conversation, with its
            reasoning and its tool calls in fields of their own; else None.
        tool_calls: The calls of that message, with parsed arguments.
        choices: All choices of a request with `n`, of which this is the first; else only this one.
    """

    text: str
    tokens: list[int]
    finish_reason: FinishReason | None
    stop_string: str | None
    stats: Stats
    logprobs: list[TokenLogprobs]
    trace: Trace | None
    message: dict[str, Any] | None = None
    _others: tuple[Generation, ...] = field(default=(), repr=False, compare=False)

    @property
    def tool_calls(self) -> list[ToolCall]:
        """See `Generation`."""
        return [] if self.message is None else ToolCall.of_message(self.message)

    @property
    def choices(self) -> list[Generation]:
        """See `Generation`."""
        return [self, *self._others]

    @classmethod
    def of_choices(cls, choices: Sequence[Generation]) -> Generation:
        """Return the first of several choices, with all of them as its `choices`."""
        return replace(choices[0], _others=tuple(choices[1:])) if choices[1:] else choices[0]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        more = f", choices: {len(self.choices)}" if self._others else ""
        return (
            f"<Generation {_check.quoted(self.text)}, tokens: {len(self.tokens)}, "
            f"finish_reason: {self.finish_reason!r}{more}>"
        )

    def _repr_html_(self) -> str:
        if self.trace is not None:
            return self.trace.to_fragment()
        figures = "".join(f"<p>{escape(line)}</p>" for line in in_words(self.stats))
        return f'<pre style="white-space: pre-wrap">{escape(self.text)}</pre>{figures}'


class MessageReader(Protocol):
    """Parses an answer as a message of its conversation."""

    def push(self, chunks: Sequence[Chunk]) -> None:
        """Read the next chunks."""

    def finish(self) -> None:
        """Read the text that was held back, at the end of the answer."""

    @property
    def message(self) -> dict[str, Any]:
        """The answer so far."""


@dataclass(frozen=True)
class GenerationState:
    """A generation in the core, and the other data that its result needs.

    Attributes:
        stream: The generation.
        echo: Text to put before the generated text.
        prompt: The end of the prompt, for the trace.
        piece: Returns the text of a token, from any thread; None if no trace is kept.
        reader: Parses the answer as a message; None if the request has no tools.
        pieces: Texts of tokens read so far, by token id. They are kept because the session may be
            closed before the next use.
        process: The process in which it runs. In a forked process everything raises ClosedError.
    """

    stream: _core.Stream
    echo: str
    prompt: str
    piece: Callable[[int], str] | None
    reader: MessageReader | None = None
    pieces: dict[int, str] = field(default_factory=dict)
    process: ProcessGuard = field(default_factory=ProcessGuard)

    @property
    def finish_reason(self) -> FinishReason | None:
        """As in `Generation`; None while the generation runs."""
        self.process.check()
        return self.stream.finish_reason if self.stream.done else None

    def result(self) -> Generation:
        """Return the result so far. May be called from any thread, at any time."""
        self.process.check()
        return Generation(
            text=self.echo + self.stream.text,
            tokens=self.stream.tokens,
            finish_reason=self.finish_reason,
            stop_string=(self.finish_reason and self.stream.stop_string) or None,
            stats=self.stream.stats,
            logprobs=self.stream.logprobs,
            trace=self.trace(),
            message=self.reader.message if self.reader is not None else None,
        )

    def step(self) -> list[Chunk] | None:
        """As `_core.Stream.step`."""
        return self._read(self.stream.step())

    def take(self) -> list[Chunk]:
        """As `_core.Stream.take`."""
        return self._read(self.stream.take())

    def advance(self) -> bool:
        """As `_core.Stream.advance`."""
        return self.stream.advance() if self.reader is None else self.step() is not None

    def _read(self, chunks: Chunks) -> Chunks:
        if self.reader is not None and chunks:
            self.reader.push(chunks)
        return chunks

    def end(self) -> None:
        """Finish while the session is open: read the texts of the trace's tokens and the end of the
        message, and warn about a drafter that failed in every round."""
        if self.reader is not None:
            self.reader.finish()
        self.trace()
        if self.stream.done:
            warn_of_failing_drafter(self.stream.stats)

    def trace(self) -> Trace | None:
        """As in `Generation`. After the session is closed, the texts of tokens read before are
        used."""
        if self.piece is None:
            return None
        rounds = self.stream.trace
        with suppress(ClosedError):
            for token in _tokens(rounds):
                if token not in self.pieces:
                    self.pieces[token] = self.piece(token)
        return Trace(rounds, self.prompt, dict(self.pieces), self.stream.stats)


def _tokens(rounds: list[RoundTrace]) -> Iterator[int]:
    for one in rounds:
        yield from (drafted.token for drafted in one.draft)
        if one.next is not None:
            yield one.next
        yield from one.forced


class Stream(Iterator[Chunk], Closing):
    """An iterator over the chunks of a generation, returned by `SpecSession.stream`.

    Reading may stop at any time: `close()` the stream, use it in a `with` statement or drop it. In
    a session with n_seq=1, beginning another generation also ends this one.
    """

    def __init__(
        self, state: GenerationState, n_prompt: int, on_prefill: Callable[[float], None] | None
    ) -> None:
        self._state = state
        self._n_prompt = n_prompt
        self._on_prefill = on_prefill
        self._chunks: deque[Chunk] = deque()

    @property
    def _here(self) -> GenerationState:
        self._state.process.check()
        return self._state

    @property
    def _stream(self) -> _core.Stream:
        return self._here.stream

    def __del__(self) -> None:
        # The session keeps the state for `last`, but a generation without a reader ends here.
        if self._state.process.is_here:
            self._state.stream.cancel()

    def __repr__(self) -> str:
        return f"<Stream, {'ended' if self._state.stream.done else 'running'}>"

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Chunk:
        """Return the next chunk, decoding as needed.

        Raises:
            DecodeError: llama.cpp failed; `result()` has the text generated before.
            ClosedError: The session was closed or began another generation, or this is a forked
                process.
            BusyError: A drafter of the session called this.
        """
        while not self._chunks:
            chunks = self._here.step()
            if chunks is None:
                self._state.end()
                raise StopIteration
            self._chunks.extend(chunks)
            if self._on_prefill is not None:
                self._report_prefill(self._on_prefill)
        return self._chunks.popleft()

    def run(self) -> Generation:
        """Generate the rest without yielding chunks, and return the whole result.

        Raises the errors that reading the chunks would raise; the session can be used afterwards.
        """
        try:
            while self._here.advance():
                if self._on_prefill is not None:
                    self._report_prefill(self._on_prefill)
        finally:
            self.close()
        return self.result()

    def _report_prefill(self, report: Callable[[float], None]) -> None:
        if self._stream.in_prompt:
            report(self._stream.n_prefilled / self._n_prompt)
        else:
            self._on_prefill = None
            report(1.0)

    def cancel(self) -> None:
        """End the generation before its next round. Text that is final by then can still be read.
        This never waits, so a signal handler or a drafter may call it."""
        self._stream.cancel()

    def close(self) -> None:
        """End the generation at once. The session may be used again immediately. (In a forked
        process this does nothing.)"""
        if not self._state.process.is_here:
            return
        self._stream.cancel()
        while self._state.advance():  # text that was held back is in result()
            pass
        self._state.end()
        self._chunks.clear()

    @property
    def finish_reason(self) -> FinishReason | None:
        """As in `Generation`; None while the generation runs."""
        return self._state.finish_reason

    @property
    def stats(self) -> Stats:
        """Counts and times of the generation so far."""
        return self._stream.stats

    def result(self) -> Generation:
        """Return the result so far, even if the generation is unfinished or failed. It includes
        text not yet read, and text held back because a stop string may begin in it."""
        return self._state.result()
