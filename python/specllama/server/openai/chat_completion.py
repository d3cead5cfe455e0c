"""/v1/chat/completions: conversations, rendered with the model's chat template."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from specllama import Chunk, GenerateOptions, Generation
from specllama._core import TokenLogprobs
from specllama.dialogue.answer_parts import (
    CallBegun,
    Content,
    Part,
    Thought,
    calls,
    content,
    thoughts,
)
from specllama.requests.background import BackgroundRequests
from specllama.server.body.conversation import read_chat
from specllama.server.body.fields import Fields
from specllama.server.body.messages import content_text
from specllama.server.body.sampling import most_tokens
from specllama.server.conversation_endpoint import ConversationEndpoint
from specllama.server.endpoint import end_reason
from specllama.server.error import ApiError
from specllama.server.logprobs import MOST_LOGPROBS, described_token
from specllama.server.openai.choices import ChoicesEndpoint
from specllama.server.settings import Settings


class ChatCompletion(ConversationEndpoint, ChoicesEndpoint):
    """A request to /v1/chat/completions."""

    kind = "chat.completion"
    chunk_kind = "chat.completion.chunk"
    id_prefix = "chatcmpl-"
    prompt_field = "messages"

    def __init__(self, model: BackgroundRequests, fields: Fields, settings: Settings) -> None:
        fields.refuse_unsupported("functions", "function_call")
        super().__init__(model, fields, settings, read_chat(model, fields))
        self._readers = [self._reader() for _ in range(self.n)]

    def _own_options(self, fields: Fields) -> GenerateOptions:
        names = ("max_completion_tokens", "max_tokens", "n_predict")
        options: GenerateOptions = {
            "max_tokens": most_tokens(fields, *names, default=self._most_tokens)
        }
        n_top = fields.integer("top_logprobs", low=0, high=MOST_LOGPROBS)
        self._logprobs = fields.flag("logprobs")
        if n_top is not None and not self._logprobs:
            raise ApiError(400, "top_logprobs requires logprobs to be true.", param="top_logprobs")
        if self._logprobs:
            options["logprobs"] = n_top or 0
        prediction = fields.object("prediction")
        if "content" in prediction:
            options["reference"] = content_text(prediction)
        return options

    def _choice(self, index: int, generation: Generation, chunks: list[Chunk]) -> dict[str, Any]:
        reader = self._readers[index]
        parts = reader.read(chunks)
        message: dict[str, Any] = {"role": "assistant", "content": generation.text, "refusal": None}
        if reader.separates_thoughts:
            message["content"] = content(parts)
            if thought := thoughts(parts):
                message["reasoning_content"] = thought
        if reader.called:
            message["content"] = content(parts) or None
            message["tool_calls"] = calls(parts)
        return {"message": message, "logprobs": self._shape(generation.logprobs)}

    def _reason(self, index: int, generation: Generation) -> str:
        reason, reader = end_reason(generation), self._readers[index]
        # A stop string may have cut the last call.
        has_called = reader.called and not reader.in_call
        return "tool_calls" if reason == "stop" and has_called else reason

    def _beginning(self, index: int) -> list[dict[str, Any]]:
        return [{"delta": {"role": "assistant", "content": ""}, "logprobs": None}]

    def _parts(self, index: int, chunk: Chunk) -> list[dict[str, Any]]:
        deltas = [_delta(part) for part in self._readers[index].push(chunk)]
        if not deltas and not self._logprobs:
            return []
        logprobs = self._shape([] if chunk.logprobs is None else [chunk.logprobs])
        # Log-probabilities are sent with their token, even if its text is still held back.
        first, *others = deltas or [{}]
        return [
            {"delta": first, "logprobs": logprobs},
            *({"delta": delta, "logprobs": None} for delta in others),
        ]

    def _rest(self, index: int) -> list[dict[str, Any]]:
        parts = self._readers[index].finish()
        return [{"delta": _delta(part), "logprobs": None} for part in parts]

    def _ending(self) -> dict[str, Any]:
        return {"delta": {}, "logprobs": None}

    def _n_thinking(self) -> int:
        return sum(reader.n_thinking for reader in self._readers)

    def _shape(self, logprobs: Iterable[TokenLogprobs]) -> dict[str, Any] | None:
        if not self._logprobs:
            return None
        content = [
            described_token(self._model, one.token, one.logprob)
            | {"top_logprobs": [described_token(self._model, *of) for of in one.top]}
            for one in logprobs
        ]
        return {"content": content, "refusal": None}


def _delta(part: Part) -> dict[str, Any]:
    """Return a part of an answer as the `delta` of a streamed message."""
    if isinstance(part, Content):
        return {"content": part.text}
    if isinstance(part, Thought):
        return {"reasoning_content": part.text}
    if isinstance(part, CallBegun):
        function = {"name": part.name, "arguments": ""}
        call = {"index": part.index, "id": part.call_id, "type": "function", "function": function}
    else:
        call = {"index": part.index, "function": {"arguments": part.text}}
    return {"tool_calls": [call]}
