"""Requests to /v1/messages."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from specllama import GenerateOptions, Generation, Handle, SpecllamaError
from specllama._core import Stats
from specllama._field import INT32
from specllama.model.media_prompt import n_rows
from specllama.requests.background import BackgroundRequests
from specllama.server.anthropic.blocks import Blocks
from specllama.server.anthropic.input import read_conversation
from specllama.server.body.constraint import form_options
from specllama.server.body.fields import Fields
from specllama.server.body.sampling import most_tokens, stop_strings
from specllama.server.conversation_endpoint import ConversationEndpoint
from specllama.server.endpoint import all_chunks, end_reason, typed_event
from specllama.server.error import ApiError
from specllama.server.settings import Settings


class MessagesEndpoint(ConversationEndpoint):
    """A request to /v1/messages."""

    prompt_field = "messages"

    def __init__(self, model: BackgroundRequests, fields: Fields, settings: Settings) -> None:
        fields.refuse_unsupported("container", "mcp_servers")
        super().__init__(model, fields, settings, read_conversation(model, fields))
        self._id = f"msg_{secrets.token_hex(12)}"

    def _own_options(self, fields: Fields) -> GenerateOptions:
        options: GenerateOptions = {
            "max_tokens": most_tokens(fields, "max_tokens", default=self._most_tokens)
        }
        thinking = fields.object("thinking")
        if "budget_tokens" in thinking:
            budget = thinking.integer("budget_tokens", low=0, high=2**63 - 1)
            options["reasoning_budget"] = None if budget is None else min(budget, INT32)
        if "stop_sequences" in fields:
            options["stop"] = stop_strings(fields, "stop_sequences")
        form = form_options(fields.object("output_config"), "format")
        if "output_format" in fields:  # its former name
            form = form_options(fields, "output_format")
        return {**options, **form}

    async def whole(self, handles: Sequence[Handle]) -> dict[str, Any]:
        (handle,) = handles
        generation = await handle
        reader = self._reader()
        blocks = Blocks.whole(reader.read(await all_chunks(handle)))
        ending = _ending(generation, called=reader.called)
        head = self._head(_usage_of(generation.stats, reader.n_thinking))
        return {**head, "content": blocks.content, **ending}

    async def events(self, handles: Sequence[Handle]) -> AsyncGenerator[bytes, None]:
        (handle,) = handles
        blocks, reader = Blocks(), self._reader()
        chunks = await handle.next_chunks()  # raises errors of the request
        try:
            head = self._head(_usage(n_rows(self.prompts[0])))
            yield typed_event({"type": "message_start", "message": head})
            while chunks:
                parts = [part for chunk in chunks for part in reader.push(chunk)]
                said = [typed_event(one) for part in parts for one in blocks.take(part)]
                if said:
                    yield b"".join(said)
                chunks = await handle.next_chunks()
            generation = await handle
        except SpecllamaError as error:
            yield self.failure(ApiError.of(error, self.given))
            return
        rest = [one for part in reader.finish() for one in blocks.take(part)]
        ended = {
            "delta": _ending(generation, called=reader.called),
            "usage": _usage_of(generation.stats, reader.n_thinking),
        }
        for one in (*rest, *blocks.end(), {"type": "message_delta", **ended}):
            yield typed_event(one)
        yield typed_event({"type": "message_stop"})

    def failure(self, error: ApiError) -> bytes:
        return typed_event(error.anthropic_body)

    def _head(self, usage: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._name,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
            **self._warned,
        }


def _ending(generation: Generation, *, called: bool) -> dict[str, Any]:
    reason = "max_tokens" if end_reason(generation) == "length" else "end_turn"
    if generation.stop_string is not None:
        reason = "stop_sequence"
    elif reason == "end_turn" and called:
        reason = "tool_use"
    return {"stop_reason": reason, "stop_sequence": generation.stop_string}


def _usage(n_prompt: int, n_reused: int = 0, n_generated: int = 0) -> dict[str, Any]:
    """Return the numbers of tokens. Reused prompt tokens are counted separately."""
    return {
        "input_tokens": n_prompt - n_reused,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": n_reused,
        "output_tokens": n_generated,
    }


def _usage_of(stats: Stats, n_thinking: int) -> dict[str, Any]:
    return {
        **_usage(stats.prompt_tokens, stats.reused_tokens, stats.generated_tokens),
        "output_tokens_details": {"thinking_tokens": n_thinking},
        "drafted_tokens": stats.drafted,
        "accepted_tokens": stats.accepted,
    }
