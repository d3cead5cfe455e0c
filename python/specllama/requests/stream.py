"""A generation, as it runs and as it ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from specllama._closing import Closing
from specllama._core import Chunk, RoundTrace, Stats, TokenLogprobs
from specllama.errors import ClosedError
from specllama.formats.trace import Trace
from specllama.model.core import CoreStream
from specllama.model.home import Home

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Generation:
    """What a request came to.

    Attributes:
        text: The generated text, without the stop string that ended it; with `echo`, the prompt
            before it.
        tokens: The generated token ids, without an end-of-generation token, up to the last one
            that lies wholly before the stop string.
        finish_reason: "stop" (end-of-generation token or stop string), "length" (max_tokens, or
            the context is full), or None when it was interrupted.
        stop_string: The stop string that ended it, if one has: of those that begin there, the one
            that was given first.
        stats: What it took.
        logprobs: One per token, if they were asked for; else empty.
        trace: What every round did, with `trace=True`; else None.
    """

    text: str
    tokens: list[int]
    finish_reason: FinishReason | None
    stop_string: str | None
    stats: Stats
    logprobs: list[TokenLogprobs]
    trace: Trace | None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Record:
    """A generation in the core, and what else its result needs.

    Attributes:
        core: The generation.
        echo: What goes before its text.
        prompt: The end of the prompt, for the trace.
        piece: Returns the text of a token, from any thread; None if there is no trace.
        pieces: The texts asked for so far: the session may be closed when they are needed again.
        home: Where it runs. In a forked process everything raises ClosedError.
    """

    core: CoreStream
    echo: str
    prompt: str
    piece: Callable[[int], str] | None
    pieces: dict[int, str] = field(default_factory=dict)
    home: Home = field(default_factory=Home)

    @property
    def finish_reason(self) -> FinishReason | None:
        """As in `Generation`; None while it runs."""
        self.home.check()
        return self.core.finish_reason if self.core.done else None

    def result(self) -> Generation:
        """Return what there is; from any thread, at any time."""
        self.home.check()
        return Generation(
            text=self.echo + self.core.text,
            tokens=self.core.tokens,
            finish_reason=self.finish_reason,
            stop_string=(self.finish_reason and self.core.stop_string) or None,
            stats=self.core.stats,
            logprobs=self.core.logprobs,
            trace=self.trace(),
        )

    def trace(self) -> Trace | None:
        """As in `Generation`. What was asked for before the session is closed keeps its texts."""
        if self.piece is None:
            return None
        rounds = self.core.trace
        with suppress(ClosedError):
            for token in _tokens(rounds):
                if token not in self.pieces:
                    self.pieces[token] = self.piece(token)
        return Trace(rounds, self.prompt, dict(self.pieces), self.core.stats)


def _tokens(rounds: list[RoundTrace]) -> Iterator[int]:
    for one in rounds:
        yield from (drafted.token for drafted in one.draft)
        if one.next is not None:
            yield one.next
        yield from one.certain


class Stream(Iterator[Chunk], Closing):
    """An iterator over the chunks of a generation. Made by `SpecSession.stream`.

    It may be left at any time: `close()` it, use it in a `with` statement, drop it, or, where the
    session serves one request at a time, begin another generation, which ends it.
    """

    def __init__(
        self, record: Record, n_prompt: int, on_prefill: Callable[[float], None] | None
    ) -> None:
        self._record = record
        self._n_prompt = n_prompt
        self._on_prefill = on_prefill
        self._chunks: deque[Chunk] = deque()

    @property
    def _core(self) -> CoreStream:
        self._record.home.check()
        return self._record.core

    def __del__(self) -> None:
        # The session keeps the record, for `last`; a generation without a reader ends here.
        if self._record.home.is_here:
            self._core.cancel()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Chunk:
        """Return the next chunk, decoding as needed.

        Raises:
            DecodeError: llama.cpp failed; what was generated until then is in `result()`.
            ClosedError: The session was closed, or began another generation; or this is a forked
                process.
            BusyError: Another thread is inside the session.
        """
        while not self._chunks:
            chunks = self._core.step()
            if chunks is None:
                self._record.trace()  # its texts, while they can be had
                raise StopIteration
            self._chunks.extend(chunks)
            if self._on_prefill is not None:
                self._report_prefill(self._on_prefill)
        return self._chunks.popleft()

    def run(self) -> Generation:
        """Generate what is left without giving its chunks, and return the whole.

        Raises what reading the chunks does, and leaves the session in good order then.
        """
        try:
            while self._core.advance():
                if self._on_prefill is not None:
                    self._report_prefill(self._on_prefill)
        finally:
            self.close()
        return self.result()

    def _report_prefill(self, report: Callable[[float], None]) -> None:
        if self._core.in_prompt:
            report(self._core.n_prefilled / self._n_prompt)
        else:
            self._on_prefill = None
            report(1.0)

    def cancel(self) -> None:
        """End the generation before its next round. What is certain until then can still be read.
        Waits for nobody: a signal handler, or a drafter, may call it."""
        self._core.cancel()

    def close(self) -> None:
        """End the generation where it is. The session may go on at once. (In a forked process
        nothing happens.)"""
        if not self._record.home.is_here:
            return
        self._core.cancel()
        while self._core.advance():  # what was held back is in result()
            pass
        self._record.trace()
        self._chunks.clear()

    @property
    def finish_reason(self) -> FinishReason | None:
        """As in `Generation`; None while it runs."""
        return self._record.finish_reason

    @property
    def stats(self) -> Stats:
        """What it took so far."""
        return self._core.stats

    def result(self) -> Generation:
        """Return what has been generated so far, also by an unfinished or failed generation,
        and also what was not read, or was held back because a stop string may begin in it."""
        return self._record.result()
