"""/v1/chat/completions: conversations, by the model's own template."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from specllama import Chunk, GenerateOptions, Generation
from specllama._core import TokenLogprobs
from specllama.model.chat_template import Message
from specllama.server.call import Call
from specllama.server.error import ApiError
from specllama.server.fields import Fields
from specllama.server.logprobs import MOST_LOGPROBS, finite
from specllama.server.sampling import most_tokens


class ChatCompletion(Call):
    """A request to /v1/chat/completions."""

    kind = "chat.completion"
    chunk_kind = "chat.completion.chunk"
    id_prefix = "chatcmpl-"
    prompt_field = "messages"

    def _own_options(self, fields: Fields) -> GenerateOptions:
        fields.refuse_unsupported("tools", "tool_choice", "functions", "function_call")
        options: GenerateOptions = {
            "max_tokens": most_tokens(fields, "max_completion_tokens", "max_tokens")
        }
        n_top = fields.integer("top_logprobs", low=0, high=MOST_LOGPROBS)
        self._logprobs = fields.flag("logprobs")
        if n_top is not None and not self._logprobs:
            raise ApiError(400, "top_logprobs needs logprobs to be true.", param="top_logprobs")
        if self._logprobs:
            options["logprobs"] = n_top or 0
        prediction = fields.object("prediction")
        if "content" in prediction:
            options["reference"] = _text(prediction)
        return options

    def _read_prompts(self, fields: Fields) -> list[list[int]]:
        if not self._model.has_chat_template:
            raise ApiError(400, "The model has no chat template; use /v1/completions.")
        fields.required("messages")
        messages = fields.any("messages")
        if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
            fields.refuse("messages", "a list of messages")
        plain = [_plain(Fields(one, f"messages[{i}]")) for i, one in enumerate(messages)]
        template_args = dict(fields.object("chat_template_kwargs").names)
        return [self._model.render_chat(plain, template_args)]

    def choice(self, generation: Generation) -> dict[str, Any]:
        return {
            "message": {"role": "assistant", "content": generation.text, "refusal": None},
            "logprobs": self._shape(generation.logprobs),
        }

    def beginning(self, index: int) -> dict[str, Any]:
        return {"delta": {"role": "assistant", "content": ""}, "logprobs": None}

    def part(self, chunk: Chunk) -> dict[str, Any]:
        logprobs = [] if chunk.logprobs is None else [chunk.logprobs]
        return {"delta": {"content": chunk.text}, "logprobs": self._shape(logprobs)}

    def ending(self) -> dict[str, Any]:
        return {"delta": {}, "logprobs": None}

    def _shape(self, logprobs: Iterable[TokenLogprobs]) -> dict[str, Any] | None:
        if not self._logprobs:
            return None
        content = [
            self._token(one.token, one.logprob)
            | {"top_logprobs": [self._token(token, logprob) for token, logprob in one.top]}
            for one in logprobs
        ]
        return {"content": content, "refusal": None}

    def _token(self, token: int, logprob: float) -> dict[str, Any]:
        text = self._model.token_text(token)
        # Of a part of a character there is no text, and nothing here knows its bytes.
        known = None if "\N{REPLACEMENT CHARACTER}" in text else list(text.encode())
        return {"token": text, "logprob": finite(logprob), "bytes": known}


def _plain(message: Fields) -> Message:
    """Return a message whose content is text."""
    message.refuse_unsupported("tool_calls", "function_call")
    if message.text("role") in ("tool", "function"):
        message.refuse("role", "that of one who writes texts: tools are not supported")
    return {**message.names, "content": _text(message)}


def _text(fields: Fields) -> str:
    """Return a field "content", which may be a text or a list of parts that are texts."""
    content = fields.any("content")
    if not isinstance(content, list):
        return fields.text("content")
    texts = []
    for part in content:
        if not isinstance(part, dict) or not isinstance(part.get("text"), str):
            fields.refuse("content", "a text, or a list of texts; others are not supported")
        texts.append(part["text"])
    return "\n".join(texts)
