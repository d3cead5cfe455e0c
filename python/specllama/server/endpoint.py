"""The base class of endpoints: prompts, options and the format of the answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, ClassVar

from specllama import Chunk, GenerateOptions, Generation, Handle, Stats
from specllama.model.media_prompt import n_rows
from specllama.requests.background import BackgroundRequests, prepared, queue_load
from specllama.requests.queued_request import QueuedRequest
from specllama.requests.schema.schema_grammar import SchemaGrammar
from specllama.server.body.fields import Fields
from specllama.server.body.limits import MOST_CHOICES
from specllama.server.body.samplers import without_steps
from specllama.server.body.sampling import read_options
from specllama.server.error import ApiError, encoded, log_once
from specllama.server.settings import Settings
from specllama.server.timings import timings
from specllama.server.watch import Watch


class Endpoint(ABC):
    """A request to continue prompts, read from its fields. The base class of all endpoints.

    The constructor raises ApiError and ArgumentError for requests that cannot be answered. It may
    be slow, and changes only this object.

    Attributes:
        prompt_field: Name of the field that contains the prompt.
        media_type: The media type of a streamed answer.
        sign_of_life: Bytes without meaning for a client that waits for the first part.
        has_progress: Whether this API can report the progress of reading the prompt.
        id: The answer's id, by which it can be cancelled; "" if it has none.
        n: Number of choices for each prompt.
        given: Names of the fields that the client gave.
        prompts: Token ids of the prompts; empty if nothing is to be generated.
        streams: Whether the answer is streamed.
        shows_progress: Whether the answer reports the progress of reading the first prompt.
        watches: Observers of the generations; empty unless the answer reports their steps.
        warnings: Sentences about constraints of the request that the answer may violate.
    """

    prompt_field: ClassVar[str]
    media_type: ClassVar[str] = "text/event-stream"
    sign_of_life: ClassVar[bytes] = b":\n\n"  # a comment of server-sent events
    has_progress: ClassVar[bool] = False
    n = 1
    id = ""

    def __init__(self, model: BackgroundRequests, fields: Fields, settings: Settings) -> None:
        fields.text("model")
        self._model = model
        self._name = settings.name
        self._max_prompt = settings.max_prompt
        self.given = frozenset(fields.given)
        self.streams = fields.flag("stream")
        self._options: GenerateOptions = read_options(fields, settings.sampling)
        self._most_tokens = self._options.get("max_tokens")
        self._options.update(self._own_options(fields))
        self._options.update(without_steps(fields, self._options))
        self._timed = self.streams and fields.flag("timings_per_token")
        self.shows_progress = self.has_progress and self.streams and fields.flag("return_progress")
        self.watches: list[Watch] = []
        self.warnings: list[str] = []
        if isinstance(schema := self._options.get("json_schema"), SchemaGrammar):
            self._warn(f"json_schema: {one}." for one in schema.warnings)
        # The server's max_tokens is the default and also a limit, as in llama-server.
        bounds = (self._options.get("max_tokens"), self._most_tokens)
        self._options["max_tokens"] = min((one for one in bounds if one is not None), default=None)
        self.prompts = self._read_prompts(fields)
        longest = max(map(n_rows, self.prompts), default=0)
        most = model.n_ctx - 1 if self._max_prompt is None else self._max_prompt
        if longest > most:
            limit = "--ctx-size" if self._max_prompt is None else "--max-prompt"
            raise ApiError(
                400,
                f"The prompt is too long: {longest} tokens > {most} maximum; shorten it, or start "
                f"the server with a larger {limit}.",
                param=self.prompt_field,
                code="context_length_exceeded",
            )
        wanted = self._options.get("max_tokens")
        if wanted is not None:  # limited to the free context, as in llama-server
            self._options["max_tokens"] = min(wanted, max(model.n_ctx - longest, 0))

    def _warn(self, sentences: Iterable[str]) -> None:
        """Add warnings for the client. Each is also logged once."""
        for one in sentences:
            self.warnings.append(one)
            log_once(one)

    @property
    def _warned(self) -> dict[str, Any]:
        """The field `warnings` of an answer; no field if there are none."""
        return {"warnings": self.warnings} if self.warnings else {}

    def _timings(self, stats: Stats) -> dict[str, Any]:
        """Return the field `timings` of an answer that has just ended."""
        return timings(stats, alone=queue_load(self._model).n_running == 0)

    def prepare(self, owner: int) -> list[QueuedRequest]:
        """Return the generations to submit, all choices for the first prompt first. They draft only
        from earlier requests of the same owner. Like the constructor, this may be slow. Raises
        ArgumentError."""
        jobs = prepared(self._model, self.prompts, self.n, self._options, owner)
        if self._timed or self.shows_progress:
            self.watches = [Watch() for _ in jobs]
            for job, watch in zip(jobs, self.watches, strict=True):
                job.on_step = watch.see
        return jobs

    def _timed_part(self, index: int) -> dict[str, Any]:
        """Return the field `timings` of a part of a streamed choice; {} unless the request wants it
        in every part."""
        stats = self.watches[index].stats if self._timed else None
        return {} if stats is None else {"timings": timings(stats, alone=False)}

    def progress(self) -> bytes:
        """Return server-sent events for the progress of reading the first prompt since the last
        call; nothing unless the request wants them."""
        news = self.watches[0].progress() if self.shows_progress else []
        return b"".join(event({**self._empty_part(), "prompt_progress": one}) for one in news)

    def _empty_part(self) -> dict[str, Any]:
        """Return a part of a streamed answer without content."""
        raise NotImplementedError

    def _check_choices(self, n_prompts: int) -> None:
        """Raise ApiError if the request has too many choices."""
        if n_prompts * self.n > MOST_CHOICES:
            raise ApiError(400, f"More than {MOST_CHOICES} choices; ask for fewer.", param="n")

    @abstractmethod
    def _own_options(self, fields: Fields) -> GenerateOptions:
        """Return the options that only this endpoint has."""

    @abstractmethod
    def _read_prompts(self, fields: Fields) -> list[list[int]]:
        """Return the token ids of the prompts. If a request may have several, their number is
        checked before they are tokenized."""

    def failure(self, error: ApiError) -> bytes:
        """Return the part of an answer that reports an error."""
        return event(error.body)

    @abstractmethod
    async def whole(self, handles: Sequence[Handle]) -> dict[str, Any]:
        """Wait until the generations end and return the whole answer. Raises the error that ended
        one."""

    @abstractmethod
    def events(self, handles: Sequence[Handle]) -> AsyncGenerator[bytes, None]:
        """Yield the parts of an answer, at least one. Parts that are ready together are joined. An
        error of a generation is raised before the first part; later it becomes a part."""


def event(data: dict[str, Any]) -> bytes:
    """Return a server-sent event."""
    return b"data: " + encoded(data) + b"\n\n"


def typed_event(data: dict[str, Any]) -> bytes:
    """Return a server-sent event that is named after the field `type` of its data."""
    return f"event: {data['type']}\n".encode() + event(data)


def end_reason(generation: Generation) -> str:
    """Return why a generation ended; "length" for one that was cancelled, as after the timeout."""
    return generation.finish_reason or "length"


async def all_chunks(handle: Handle) -> list[Chunk]:
    """Wait until a generation ends and return all its chunks. Raises the error that ended it."""
    every: list[Chunk] = []
    while chunks := await handle.next_chunks():
        every += chunks
    return every
