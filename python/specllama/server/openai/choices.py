"""Answers as lists of choices: the format of completions and chat completions."""

from __future__ import annotations

import asyncio
import secrets
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, ClassVar

from specllama import Chunk, Generation, Handle, SpecllamaError
from specllama.errors import ClosedError
from specllama.requests.background import BackgroundRequests
from specllama.server.body.fields import Fields
from specllama.server.body.limits import MOST_CHOICES
from specllama.server.endpoint import Endpoint, all_chunks, end_reason, event
from specllama.server.error import ApiError
from specllama.server.settings import Settings


class ChoicesEndpoint(Endpoint):
    """A request whose answer is a list of choices.

    Attributes:
        kind, chunk_kind: The API's names for an answer and for a part of a streamed answer.
        id_prefix: Prefix of the answer's id.
    """

    kind: ClassVar[str]
    chunk_kind: ClassVar[str]
    id_prefix: ClassVar[str]
    has_progress = True

    def __init__(self, model: BackgroundRequests, fields: Fields, settings: Settings) -> None:
        self.n = fields.integer("n", low=1, high=MOST_CHOICES) or 1
        super().__init__(model, fields, settings)
        self._options["trace"] = fields.flag("trace_html")
        self._include_usage = fields.object("stream_options").flag("include_usage")
        self.id = self.id_prefix + secrets.token_hex(12)
        self._head = {
            "id": self.id,
            "object": self.chunk_kind if self.streams else self.kind,
            "created": int(time.time()),
            "model": self._name,
        }

    async def whole(self, handles: Sequence[Handle]) -> dict[str, Any]:
        generations = await _endings(handles)
        choices = [
            {
                "index": i,
                **self._choice(i, one, await all_chunks(handles[i])),
                **_trace(one),
                "finish_reason": self._reason(i, one),
            }
            for i, one in enumerate(generations)
            if one is not None
        ]
        return {**self._head, "choices": choices, **self._figures(generations)}

    async def events(self, handles: Sequence[Handle]) -> AsyncGenerator[bytes, None]:
        begun: set[int] = set()
        try:
            async for index, chunks in _merged(handles):
                events = b""
                if index not in begun:
                    begun.add(index)
                    events += self._event(index, self._beginning(index))
                for chunk in chunks:
                    drafted = {"from_draft": True} if chunk.from_draft else {}
                    events += self._event(index, self._parts(index, chunk), drafted)
                if not chunks:
                    generation = await handles[index]
                    events += self._event(index, self._rest(index))
                    reason = {"finish_reason": self._reason(index, generation)}
                    ending = self._ending() | _trace(generation)
                    events += self._event(index, [ending], reason)
                if events:
                    yield events
        except SpecllamaError as error:
            if not begun:
                raise
            yield event(ApiError.of(error, self.given).body)
            return
        if self._include_usage:
            generations = await _endings(handles)
            yield event({**self._head, "choices": [], **self._figures(generations)})
        yield b"data: [DONE]\n\n"

    def _event(
        self, index: int, parts: Iterable[dict[str, Any]], more: dict[str, Any] | None = None
    ) -> bytes:
        return b"".join(
            event({
                **self._head,
                "choices": [{"index": index, **part, "finish_reason": None, **(more or {})}],
                **self._timed_part(index),
            })
            for part in parts
        )  # fmt: skip

    def _empty_part(self) -> dict[str, Any]:
        part = {"index": 0, **self._ending(), "finish_reason": None}
        return {**self._head, "choices": [part]}

    def _usage(self, generations: Sequence[Generation | None]) -> dict[str, Any]:
        """Return the tokens that the generations used. A prompt counts once for all its choices."""
        prompts = [one.stats for one in generations[:: self.n] if one is not None]
        stats = [one.stats for one in generations if one is not None]
        n_prompt = sum(one.prompt_tokens for one in prompts)
        n_generated = sum(one.generated_tokens for one in stats)
        drafted, accepted = sum(one.drafted for one in stats), sum(one.accepted for one in stats)
        return {
            "prompt_tokens": n_prompt,
            "completion_tokens": n_generated,
            "total_tokens": n_prompt + n_generated,
            "prompt_tokens_details": {"cached_tokens": sum(one.reused_tokens for one in prompts)},
            "completion_tokens_details": {
                "reasoning_tokens": self._n_thinking(),
                "accepted_prediction_tokens": accepted,
                "rejected_prediction_tokens": drafted - accepted,
            },
            "drafted_tokens": drafted,
            "accepted_tokens": accepted,
        }

    def _figures(self, generations: Sequence[Generation | None]) -> dict[str, Any]:
        """Return the fields about the generations: `usage`, `warnings`, and llama-server's
        `timings` if there is only one generation."""
        (first, *others) = generations
        figures = {"usage": self._usage(generations), **self._warned}
        if first is not None and not others:
            figures["timings"] = self._timings(first.stats)
        return figures

    def _reason(self, index: int, generation: Generation) -> str:
        """Return why a choice ended."""
        return end_reason(generation)

    def _n_thinking(self) -> int:
        """Return the number of thought tokens so far, in all choices."""
        return 0

    @abstractmethod
    def _choice(self, index: int, generation: Generation, chunks: list[Chunk]) -> dict[str, Any]:
        """Return a choice of an answer that is not streamed, without index and finish_reason."""

    @abstractmethod
    def _beginning(self, index: int) -> list[dict[str, Any]]:
        """Return the parts at the beginning of the streamed choice at an index; [] if it has
        none."""

    @abstractmethod
    def _parts(self, index: int, chunk: Chunk) -> list[dict[str, Any]]:
        """Return the parts of a streamed choice that a chunk completes."""

    def _rest(self, index: int) -> list[dict[str, Any]]:
        """Return the parts of a streamed choice that were held back to its end."""
        return []

    @abstractmethod
    def _ending(self) -> dict[str, Any]:
        """Return the empty last part of a streamed choice."""


def _trace(generation: Generation) -> dict[str, Any]:
    """Return a choice's field with the trace as HTML; {} unless the request wants it."""
    return {} if generation.trace is None else {"trace_html": generation.trace.to_fragment()}


async def _endings(handles: Sequence[Handle]) -> list[Generation | None]:
    """Return all results. The result of a generation that was cut before it began is None, if
    another has begun. Raises the error of a failed generation, or of a cut one if none has
    begun."""
    found: list[Generation | None] = []
    for handle in handles:
        try:
            found.append(await handle)
        except ClosedError:
            if not _is_left_out(handle, handles):
                raise
            found.append(None)
    return found


def _is_left_out(handle: Handle, handles: Sequence[Handle]) -> bool:
    """Whether a cut generation is left out of the answer, because only another has begun."""
    return not handle.begun and any(one.begun for one in handles)


async def _merged(handles: Sequence[Handle]) -> AsyncGenerator[tuple[int, list[Chunk]], None]:
    """Yield (index of a handle, its next chunks) as chunks arrive. An empty list means the end of
    that handle's chunks."""
    waiting = {asyncio.ensure_future(one.next_chunks()): i for i, one in enumerate(handles)}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                index = waiting.pop(task)
                try:
                    chunks = task.result()
                except ClosedError:
                    if not _is_left_out(handles[index], handles):
                        raise
                    continue
                if chunks:
                    waiting[asyncio.ensure_future(handles[index].next_chunks())] = index
                yield index, chunks
    finally:
        for task in waiting:
            task.cancel()
            # Retrieves the error; otherwise asyncio would log it.
            task.add_done_callback(lambda one: one.cancelled() or one.exception())
