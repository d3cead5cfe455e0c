"""What a client asks for: prompts, how to continue them, and in what shape to answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from specllama import Chunk, GenerateOptions, Generation, Handle
from specllama.requests.background import BackgroundRequests
from specllama.server.error import ApiError
from specllama.server.fields import Fields
from specllama.server.sampling import sampling_options
from specllama.server.settings import Settings

_MAX_CHOICES = 128


class Call(ABC):
    """A request to continue prompts, read from its fields; what both kinds have in common.

    Raises ApiError and ArgumentError for what cannot be answered.

    Attributes:
        kind, chunk_kind: What the API calls the answer, and a part of a streamed one.
        id_prefix: How its id begins.
        prompt_field: What the field is called that has the prompt.
        n: Choices for each prompt.
        given: The fields that the client gave.
        prompts: Token ids of the prompts.
        streams: The answer is to come in parts.
        include_usage: Of a streamed answer, at its end, how many tokens it took.
    """

    kind: ClassVar[str]
    chunk_kind: ClassVar[str]
    id_prefix: ClassVar[str]
    prompt_field: ClassVar[str]

    def __init__(self, model: BackgroundRequests, fields: Fields, settings: Settings) -> None:
        fields.text("model")
        self._model = model
        self.given = fields.names
        self.n = fields.integer("n", low=1, high=_MAX_CHOICES) or 1
        self.streams = fields.flag("stream")
        self.include_usage = fields.object("stream_options").flag("include_usage")
        self._options: GenerateOptions = sampling_options(fields)
        self._options["trace"] = fields.flag("trace_html")
        self._options.update(self._own_options(fields))
        self.prompts = self._read_prompts(fields)
        if len(self.prompts) * self.n > _MAX_CHOICES:
            raise ApiError(400, f"More than {_MAX_CHOICES} choices; ask for fewer.", param="n")
        longest = max(map(len, self.prompts))
        most = model.n_ctx - 1 if settings.max_prompt is None else settings.max_prompt
        if longest > most:
            raise ApiError(
                400,
                f"The prompt has {longest} tokens; at most {most} are allowed.",
                param=self.prompt_field,
                code="context_length_exceeded",
            )

    def submit(self) -> list[Handle]:
        """Hand it to the session: the choices for the first prompt first."""
        handles: list[Handle] = []
        try:
            for prompt in self.prompts:
                handles += self._model.submit(prompt, n=self.n, **self._options)
        except BaseException:
            for handle in handles:
                handle.cancel()
            raise
        return handles

    def usage(self, generations: Sequence[Generation]) -> dict[str, Any]:
        """Return how many tokens the generations took; a prompt counts once for all its choices."""
        prompts = [one.stats for one in generations[:: self.n]]
        stats = [one.stats for one in generations]
        n_prompt = sum(one.prompt_tokens for one in prompts)
        n_generated = sum(one.generated_tokens for one in stats)
        drafted, accepted = sum(one.drafted for one in stats), sum(one.accepted for one in stats)
        return {
            "prompt_tokens": n_prompt,
            "completion_tokens": n_generated,
            "total_tokens": n_prompt + n_generated,
            "prompt_tokens_details": {"cached_tokens": sum(one.reused_tokens for one in prompts)},
            "completion_tokens_details": {
                "accepted_prediction_tokens": accepted,
                "rejected_prediction_tokens": drafted - accepted,
            },
            "drafted_tokens": drafted,
            "accepted_tokens": accepted,
        }

    def trace(self, generation: Generation) -> dict[str, Any]:
        """Return, as a field of its choice, who drafted what as HTML; nothing, if not asked for."""
        return {} if generation.trace is None else {"trace_html": generation.trace.to_fragment()}

    @abstractmethod
    def _own_options(self, fields: Fields) -> GenerateOptions:
        """Return the options that only this kind has."""

    @abstractmethod
    def _read_prompts(self, fields: Fields) -> list[list[int]]:
        """Return the token ids of the prompts, at least one."""

    @abstractmethod
    def choice(self, generation: Generation) -> dict[str, Any]:
        """Return a choice of an answer that comes as a whole, without index and finish_reason."""

    @abstractmethod
    def beginning(self, index: int) -> dict[str, Any] | None:
        """Return what the streamed choice at an index begins with, if anything."""

    @abstractmethod
    def part(self, chunk: Chunk) -> dict[str, Any]:
        """Return a part of a streamed choice."""

    @abstractmethod
    def ending(self) -> dict[str, Any]:
        """Return the empty last part of a streamed choice."""
