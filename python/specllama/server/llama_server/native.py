"""Answers in llama-server's own format."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

from specllama import Chunk, GenerateOptions, Generation, Handle, SpecllamaError
from specllama._core import TokenLogprobs
from specllama.server.body.fields import Fields
from specllama.server.body.sampling import most_tokens
from specllama.server.endpoint import Endpoint, event
from specllama.server.error import ApiError
from specllama.server.logprobs import finite

_DEFAULTS: GenerateOptions = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
"""Defaults of llama.cpp's server."""

_MOST_PROBS = 100
"""Maximum number of top log-probabilities for each position."""


class NativeEndpoint(Endpoint):
    """A request to continue one prompt, answered in this format."""

    has_progress = True

    def _own_options(self, fields: Fields) -> GenerateOptions:
        options: dict[str, Any] = {
            name: value for name, value in _DEFAULTS.items() if name not in fields
        }
        most = most_tokens(fields, "n_predict", "max_tokens", default=self._most_tokens)
        # With 0 tokens, a client wants the prompt to be decoded before its next request.
        self._only_reads = most == 0
        options["max_tokens"] = 1 if self._only_reads else most
        self._shows_tokens = self.streams or fields.flag("return_tokens")
        wanted = "n_probs" if "n_probs" in fields else "logprobs"
        self._n_probs = fields.integer(wanted, low=0, high=_MOST_PROBS) or 0
        self._of_choice = fields.flag("post_sampling_probs")
        if self._n_probs > 0:
            options |= {"logprobs": self._n_probs, "processed_logprobs": self._of_choice}
        return cast(GenerateOptions, options)

    def _read_prompts(self, fields: Fields) -> list[list[int]]:
        return [self._read_prompt(fields)]

    @abstractmethod
    def _read_prompt(self, fields: Fields) -> list[int]:
        """Return the token ids of the prompt."""

    async def whole(self, handles: Sequence[Handle]) -> dict[str, Any]:
        generation = await handles[0]
        said = not self._only_reads
        tokens = generation.tokens if said and self._shows_tokens else []
        return (
            self._body(generation.text if said else "", tokens)
            | self._end(generation)
            | self._probabilities(generation.logprobs if said else ())
        )

    async def events(self, handles: Sequence[Handle]) -> AsyncGenerator[bytes, None]:
        (handle,) = handles
        begun = False
        try:
            while chunks := await handle.next_chunks():
                begun = True
                if not self._only_reads:
                    yield b"".join(event(self._part(chunk)) for chunk in chunks)
            yield event(self._body("", []) | self._end(await handle))
        except SpecllamaError as error:
            if not begun:
                raise
            yield event(ApiError.of(error, self.given).body)

    def _part(self, chunk: Chunk) -> dict[str, Any]:
        tokens = [] if chunk.token is None else [chunk.token]
        logprobs = [] if chunk.logprobs is None else [chunk.logprobs]
        return self._body(chunk.text, tokens) | self._probabilities(logprobs) | self._timed_part(0)

    def _empty_part(self) -> dict[str, Any]:
        return self._body("", [])

    def _body(self, text: str, tokens: Sequence[int]) -> dict[str, Any]:
        return {
            "index": 0,
            "content": text,
            "tokens": list(tokens),
            "stop": False,
            "model": self._name,
        }

    def _end(self, generation: Generation) -> dict[str, Any]:
        stats = generation.stats
        n = 0 if self._only_reads else stats.generated_tokens
        return {
            "stop": True,
            "id_slot": stats.slot,
            "stop_type": _stop_type(generation),
            "stopping_word": generation.stop_string or "",
            "truncated": False,
            "tokens_predicted": n,
            "tokens_evaluated": stats.prompt_tokens,
            "tokens_cached": stats.prompt_tokens + n,
            "generation_settings": {"n_ctx": self._model.n_ctx, "seed": stats.seed},
            "timings": self._timings(stats),
            **self._warned,
        }

    def _probabilities(self, logprobs: Sequence[TokenLogprobs]) -> dict[str, Any]:
        if not logprobs:
            return {}
        top = "top_probs" if self._of_choice else "top_logprobs"
        return {
            "completion_probabilities": [
                self._token(one.token, one.logprob)
                | {top: [self._token(token, logprob) for token, logprob in one.top]}
                for one in logprobs
            ]
        }

    def _token(self, token: int, logprob: float) -> dict[str, Any]:
        piece = self._model.token_bytes(token)
        likely = {"prob": math.exp(logprob)} if self._of_choice else {"logprob": finite(logprob)}
        return {"id": token, "token": piece.decode(errors="replace"), "bytes": [*piece], **likely}


def _stop_type(generation: Generation) -> str:
    if generation.stop_string is not None:
        return "word"
    return "eos" if generation.finish_reason == "stop" else "limit"
