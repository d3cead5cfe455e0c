"""What a client asks for: prompts, how to continue them, and in what shape to answer."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from typing import Any, ClassVar

from specllama import Chunk, GenerateOptions, Generation, Handle
from specllama.requests.background import BackgroundRequests
from specllama.server.error import ApiError
from specllama.server.fields import Fields
from specllama.server.sampling import sampling_options
from specllama.server.settings import Settings

MOST_CHOICES = 128


class Call(ABC):
    """A request to continue prompts, read from its fields; what all kinds have in common.

    Raises ApiError and ArgumentError for what cannot be answered.

    Attributes:
        prompt_field: What the field is called that has the prompt.
        n: Choices for each prompt.
        given: The fields that the client gave.
        prompts: Token ids of the prompts.
        streams: The answer is to come in parts.
    """

    prompt_field: ClassVar[str]
    n = 1

    def __init__(self, model: BackgroundRequests, fields: Fields, settings: Settings) -> None:
        fields.text("model")
        self._model = model
        self._name = settings.name
        self._max_prompt = settings.max_prompt
        self.given = fields.given
        self.streams = fields.flag("stream")
        self._options: GenerateOptions = sampling_options(fields, settings.sampling)
        self._most_tokens = self._options.get("max_tokens")  # of requests that do not say
        self._options.update(self._own_options(fields))
        self.prompts = self._read_prompts(fields)
        if len(self.prompts) * self.n > MOST_CHOICES:
            raise ApiError(400, f"More than {MOST_CHOICES} choices; ask for fewer.", param="n")
        longest = max(map(len, self.prompts))
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
        if wanted is not None:  # clients ask for more than there is room for; as for llama-server
            self._options["max_tokens"] = min(wanted, max(model.n_ctx - longest, 0))

    def submit(self) -> list[Handle]:
        """Hand it to the session: the choices for the first prompt first."""
        return self._model.submit_several(self.prompts, n=self.n, **self._options)

    @abstractmethod
    def _own_options(self, fields: Fields) -> GenerateOptions:
        """Return the options that only this kind has."""

    @abstractmethod
    def _read_prompts(self, fields: Fields) -> list[list[int]]:
        """Return the token ids of the prompts, at least one."""

    def failure(self, error: ApiError) -> bytes:
        """Return the server-sent event that says what went wrong."""
        return event(error.body)

    @abstractmethod
    async def whole(self, handles: Sequence[Handle]) -> dict[str, Any]:
        """Return the whole answer, when the generations have ended. Raises what ended them."""

    @abstractmethod
    def events(self, handles: Sequence[Handle]) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events, at least one, as many at once as there are. Raises what ended
        the generations only before the first."""


def encoded(data: dict[str, Any]) -> bytes:
    """Return JSON, in ASCII: what a client sent may be in it, half a surrogate pair included."""
    return json.dumps(data, separators=(",", ":")).encode()


def event(data: dict[str, Any]) -> bytes:
    """Return a server-sent event."""
    return b"data: " + encoded(data) + b"\n\n"


def end_reason(generation: Generation) -> str:
    """Return why a generation ended; one that took too long was cut to a length, too."""
    return generation.finish_reason or "length"


async def all_chunks(handle: Handle) -> list[Chunk]:
    """Return all chunks of a generation, when it has ended. Raises what ended it."""
    every: list[Chunk] = []
    while chunks := await handle.next_chunks():
        every += chunks
    return every
