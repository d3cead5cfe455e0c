"""The paths of requests to a model, all with POST."""

from __future__ import annotations

from specllama.server.anthropic.endpoint import MessagesEndpoint
from specllama.server.endpoint import Endpoint
from specllama.server.llama_server.infill import Infill
from specllama.server.llama_server.native_completion import NativeCompletion
from specllama.server.ollama.chat import OllamaChat
from specllama.server.ollama.generate import OllamaGenerate
from specllama.server.openai.chat_completion import ChatCompletion
from specllama.server.openai.completion import Completion
from specllama.server.responses.endpoint import ResponsesEndpoint

_ENDPOINTS: dict[str, type[Endpoint]] = {
    "/v1/completions": Completion,
    "/v1/chat/completions": ChatCompletion,
    "/v1/responses": ResponsesEndpoint,
    "/v1/messages": MessagesEndpoint,
    "/api/chat": OllamaChat,
    "/api/generate": OllamaGenerate,
    "/completion": NativeCompletion,
    "/infill": Infill,
}

# Paths in /v1 are also served without it, for clients whose base URL lacks it.
ENDPOINTS = {
    path: kind
    for name, kind in _ENDPOINTS.items()
    for path in dict.fromkeys((name, name.removeprefix("/v1")))
}
"""The endpoints that generate, by path."""

COUNT_TOKENS = ("/v1/messages/count_tokens", "/messages/count_tokens")

POST_PATHS = (*ENDPOINTS, *COUNT_TOKENS, "/tokenize", "/detokenize", "/apply-template")
"""All paths of requests to a model."""
