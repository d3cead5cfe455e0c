"""Requests to /v1/responses."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from specllama import GenerateOptions, Generation, Handle, SpecllamaError
from specllama.dialogue.answer_reader import AnswerReader
from specllama.dialogue.conversation import Conversation
from specllama.requests.background import BackgroundRequests
from specllama.server.body.constraint import form_options
from specllama.server.body.conversation import read_template_args
from specllama.server.body.fields import Fields
from specllama.server.body.sampling import most_tokens
from specllama.server.conversation_endpoint import ConversationEndpoint
from specllama.server.endpoint import all_chunks, end_reason, typed_event
from specllama.server.error import ApiError
from specllama.server.media.request_media import RequestMedia
from specllama.server.responses.input import read_input
from specllama.server.responses.output import Output
from specllama.server.settings import Settings
from specllama.server.tools.read_choice import read_choice
from specllama.server.tools.read_tools import RESPONSES

_ECHOED = ("instructions", "max_output_tokens", "metadata", "temperature", "top_p", "user")
_DEFAULTS = {"metadata": {}, "tool_choice": "auto", "tools": [], "parallel_tool_calls": True}


class ResponsesEndpoint(ConversationEndpoint):
    """A request to /v1/responses. The server does not store it or its answer."""

    prompt_field = "input"

    def __init__(self, model: BackgroundRequests, fields: Fields, settings: Settings) -> None:
        fields.refuse_unsupported("previous_response_id", "conversation", "prompt", "background")
        choice = read_choice(fields, RESPONSES)
        template_args = read_template_args(fields, fields.object("reasoning").text("effort"))
        media = RequestMedia(model, fields)
        messages = read_input(fields, media)
        conversation = Conversation(model, messages, choice, template_args, media=media.taken())
        super().__init__(model, fields, settings, conversation)
        given = fields.given
        self._head = {
            "id": f"resp_{secrets.token_hex(12)}",
            "object": "response",
            "created_at": int(time.time()),
            "model": self._name,
            "error": None,
            "previous_response_id": None,
            "store": False,
            "text": given.get("text", {"format": {"type": "text"}}),
            **dict.fromkeys(_ECHOED),
            **_DEFAULTS,
            **{name: given[name] for name in (*_ECHOED, *_DEFAULTS) if name in given},
        }

    def _own_options(self, fields: Fields) -> GenerateOptions:
        form = form_options(fields.object("text"), "format")
        most = most_tokens(fields, "max_output_tokens", default=self._most_tokens)
        return {"max_tokens": most, **form}

    async def whole(self, handles: Sequence[Handle]) -> dict[str, Any]:
        (handle,) = handles
        generation = await handle
        reader = self._reader()
        parts = reader.read(await all_chunks(handle))
        output = Output.whole(parts, _last_status(generation, reader))
        return self._body(output, generation, reader.n_thinking)

    async def events(self, handles: Sequence[Handle]) -> AsyncGenerator[bytes, None]:
        (handle,) = handles
        output, reader, number = Output(), self._reader(), _Numbered()
        chunks = await handle.next_chunks()  # raises errors of the request
        try:
            yield number.event({"type": "response.created", "response": self._body(output)})
            yield number.event({"type": "response.in_progress", "response": self._body(output)})
            while chunks:
                parts = [part for chunk in chunks for part in reader.push(chunk)]
                for event in (event for part in parts for event in output.take(part)):
                    yield number.event(event)
                chunks = await handle.next_chunks()
            generation = await handle
        except SpecllamaError as error:
            said = ApiError.of(error, self.given).body["error"]
            failed = {"code": "server_error", "message": said["message"]}
            body = {**self._body(output), "status": "failed", "error": failed}
            yield number.event({"type": "response.failed", "response": body})
            return
        for event in (event for part in reader.finish() for event in output.take(part)):
            yield number.event(event)
        for event in output.end(_last_status(generation, reader)):
            yield number.event(event)
        body = self._body(output, generation, reader.n_thinking)
        yield number.event({"type": f"response.{_status(generation)}", "response": body})

    def _body(
        self, output: Output, generation: Generation | None = None, n_thinking: int = 0
    ) -> dict[str, Any]:
        status = "in_progress" if generation is None else _status(generation)
        cut = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {
            **self._head,
            "status": status,
            "incomplete_details": cut,
            "output": output.items,
            "usage": None if generation is None else _usage(generation, n_thinking),
            **self._warned,
        }


class _Numbered:
    def __init__(self) -> None:
        self._n = 0

    def event(self, data: dict[str, Any]) -> bytes:
        """Return a server-sent event that is named after its type, with the next number."""
        numbered = {**data, "sequence_number": self._n}
        self._n += 1
        return typed_event(numbered)


def _status(generation: Generation) -> str:
    return "incomplete" if end_reason(generation) == "length" else "completed"


def _last_status(generation: Generation, reader: AnswerReader) -> str:
    """Return the status of an answer's last item: a stop string may have cut a call."""
    return "incomplete" if reader.in_call else _status(generation)


def _usage(generation: Generation, n_thinking: int) -> dict[str, Any]:
    stats = generation.stats
    return {
        "input_tokens": stats.prompt_tokens,
        "input_tokens_details": {"cached_tokens": stats.reused_tokens},
        "output_tokens": stats.generated_tokens,
        "output_tokens_details": {"reasoning_tokens": n_thinking},
        "total_tokens": stats.prompt_tokens + stats.generated_tokens,
        "drafted_tokens": stats.drafted,
        "accepted_tokens": stats.accepted,
    }
