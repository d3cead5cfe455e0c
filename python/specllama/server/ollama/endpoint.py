"""Answers in Ollama's format: JSON objects, one per line."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timezone
from typing import Any, cast

from specllama import Chunk, GenerateOptions, Generation, Handle, SpecllamaError
from specllama._core import TokenLogprobs
from specllama.dialogue.answer_parts import Arguments, CallBegun, Part, calls, content, thoughts
from specllama.dialogue.answer_reader import AnswerReader
from specllama.dialogue.conversation import Conversation
from specllama.requests.background import BackgroundRequests
from specllama.requests.json_text import parsed
from specllama.server.body.constraint import schema_option
from specllama.server.body.fields import Fields
from specllama.server.conversation_endpoint import ConversationEndpoint
from specllama.server.endpoint import all_chunks, end_reason
from specllama.server.error import ApiError, encoded
from specllama.server.logprobs import MOST_LOGPROBS, described_token
from specllama.server.ollama.fields import most_tokens
from specllama.server.settings import Settings

_DEFAULTS: GenerateOptions = {"temperature": 0.8, "top_k": 40, "top_p": 0.9}
"""Ollama's defaults."""

_NANOSECONDS = 1_000_000_000


class OllamaEndpoint(ConversationEndpoint):
    """A request of Ollama's API. A request without a prompt only asks to load the model, and is
    answered at once.

    Args:
        fields: The translated fields.
        conversation: The conversation; None if the request has none.
    """

    media_type = "application/x-ndjson"
    sign_of_life = b" "  # between JSON objects

    def __init__(
        self,
        model: BackgroundRequests,
        fields: Fields,
        settings: Settings,
        conversation: Conversation | None,
    ) -> None:
        self._began = time.perf_counter()
        super().__init__(model, fields, settings, conversation)

    def _own_options(self, fields: Fields) -> GenerateOptions:
        options: dict[str, Any] = {
            name: value for name, value in _DEFAULTS.items() if name not in fields
        }
        options["max_tokens"] = most_tokens(fields, self._most_tokens)
        form = fields.any("format")
        if form == "json":
            options |= schema_option(Fields({"format": {"type": "object"}}), "format")
        elif form not in (None, ""):
            options |= schema_option(fields, "format")
        n_top = fields.integer("top_logprobs", low=0, high=MOST_LOGPROBS)
        if fields.flag("logprobs"):
            options["logprobs"] = n_top or 0
        return cast(GenerateOptions, options)

    @abstractmethod
    def _said(self, text: str, thought: str, made: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the fields of a part of an answer: content, thought and calls."""

    def _more(self, generation: Generation) -> dict[str, Any]:
        """Return further fields for the end of an answer."""
        return {}

    async def whole(self, handles: Sequence[Handle]) -> dict[str, Any]:
        if not handles:
            return self._loaded()
        (handle,) = handles
        generation = await handle
        spoken = _Spoken(self._reader())
        said = self._said(*spoken.whole(await all_chunks(handle)))
        return self._line(said | self._logprobs(generation.logprobs)) | self._end(generation)

    async def events(self, handles: Sequence[Handle]) -> AsyncGenerator[bytes, None]:
        if not handles:
            yield _encoded_line(self._loaded())
            return
        (handle,) = handles
        spoken = _Spoken(self._reader())
        chunks = await handle.next_chunks()  # raises errors of the request
        try:
            while chunks:
                lines = b"".join(self._part(spoken, one) for one in chunks)
                if lines:
                    yield lines
                chunks = await handle.next_chunks()
            generation = await handle
        except SpecllamaError as error:
            yield self.failure(ApiError.of(error, self.given))
            return
        end = self._line(self._said(*spoken.rest())) | self._end(generation)
        yield _encoded_line(end)

    def failure(self, error: ApiError) -> bytes:
        return _encoded_line(error.ollama_body)

    def _part(self, spoken: _Spoken, chunk: Chunk) -> bytes:
        said = spoken.push(chunk)
        logprobs = self._logprobs([] if chunk.logprobs is None else [chunk.logprobs])
        if not any(said) and not logprobs:
            return b""
        return _encoded_line(self._line(self._said(*said) | logprobs))

    def _line(self, said: dict[str, Any]) -> dict[str, Any]:
        now = datetime.now(timezone.utc)
        return {"model": self._name, "created_at": zulu(now), **said, "done": False}

    def _loaded(self) -> dict[str, Any]:
        """Return the answer to a request without a prompt."""
        return self._line(self._said("", "", [])) | {"done": True, "done_reason": "load"}

    def _end(self, generation: Generation) -> dict[str, Any]:
        """Return the fields at the end of an answer."""
        stats = generation.stats
        total = time.perf_counter() - self._began
        seconds = stats.seconds
        return {
            "done": True,
            "done_reason": end_reason(generation),
            "total_duration": _nanoseconds(total),
            # The time before the prompt was read: reading the request, and the queue.
            "load_duration": _nanoseconds(max(total - seconds.total, 0.0)),
            "prompt_eval_count": stats.prompt_tokens,
            "prompt_eval_duration": _nanoseconds(seconds.prefill),
            "eval_count": stats.generated_tokens,
            "eval_duration": _nanoseconds(max(seconds.total - seconds.prefill, 0.0)),
            "drafted_tokens": stats.drafted,
            "accepted_tokens": stats.accepted,
            **self._warned,
            **self._more(generation),
        }

    def _logprobs(self, logprobs: Sequence[TokenLogprobs]) -> dict[str, Any]:
        if not logprobs:
            return {}
        shaped = [
            described_token(self._model, one.token, one.logprob)
            | {"top_logprobs": [described_token(self._model, *of) for of in one.top]}
            for one in logprobs
        ]
        return {"logprobs": shaped}


class _Spoken:
    """Splits a model's text into parts of an answer in Ollama's format: (content, thought, calls).
    Ollama sends calls whole, with an object as arguments. So a call is held back until it is
    complete."""

    def __init__(self, reader: AnswerReader) -> None:
        self._reader = reader
        self._of_calls: list[Part] = []
        self._n_sent = 0

    def whole(self, chunks: Sequence[Chunk]) -> tuple[str, str, list[dict[str, Any]]]:
        """Return a whole answer."""
        return self._take(self._reader.read(chunks), ended=True)

    def push(self, chunk: Chunk) -> tuple[str, str, list[dict[str, Any]]]:
        """Add the next chunk; return the parts that are complete."""
        return self._take(self._reader.push(chunk), ended=not self._reader.in_call)

    def rest(self) -> tuple[str, str, list[dict[str, Any]]]:
        """Return the parts held back until the end of the answer."""
        return self._take(self._reader.finish(), ended=True)

    def _take(self, parts: Sequence[Part], *, ended: bool) -> tuple[str, str, list[dict[str, Any]]]:
        """ended: Whether no call continues after these parts."""
        self._of_calls += [one for one in parts if isinstance(one, (CallBegun, Arguments))]
        text, made = content(parts), []
        if ended and self._of_calls:
            written = calls(self._of_calls)
            for i, call in enumerate(written[self._n_sent :], self._n_sent):
                function = call["function"]
                arguments = _object(function["arguments"])
                if arguments is None:  # cut: sent as text, so that it is not lost
                    text += f"{function['name']} {function['arguments']}"
                    continue
                entry = {"index": i, "name": function["name"], "arguments": arguments}
                made.append({"id": call["id"], "function": entry})
            self._n_sent = len(written)
        return text, thoughts(parts), made


def zulu(when: datetime) -> str:
    """Return a time as text, in Ollama's format."""
    return when.isoformat().replace("+00:00", "Z")


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text; None if the text is not one."""
    try:
        value = parsed(text or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _encoded_line(data: dict[str, Any]) -> bytes:
    return encoded(data) + b"\n"


def _nanoseconds(seconds: float) -> int:
    return round(seconds * _NANOSECONDS)
