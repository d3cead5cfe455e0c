"""/v1/completions: prompts as text or token ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from specllama import Chunk, GenerateOptions, Generation, _check
from specllama._core import TokenLogprobs
from specllama.server.call import Call
from specllama.server.fields import Fields
from specllama.server.logprobs import MOST_LOGPROBS, finite
from specllama.server.sampling import most_tokens

_DEFAULT_MAX_TOKENS = 16  # as in the OpenAI API


class Completion(Call):
    """A request to /v1/completions."""

    kind = chunk_kind = "text_completion"
    id_prefix = "cmpl-"
    prompt_field = "prompt"

    def _own_options(self, fields: Fields) -> GenerateOptions:
        fields.refuse_unsupported("suffix")
        self._echo = fields.flag("echo")
        most = most_tokens(fields, "max_tokens")
        options: GenerateOptions = {
            "max_tokens": _DEFAULT_MAX_TOKENS if most is None else most,
            "echo": self._echo,
        }
        self._logprobs = fields.integer("logprobs", low=0, high=MOST_LOGPROBS)
        if self._logprobs is not None:
            options["logprobs"] = self._logprobs
        return options

    def _read_prompts(self, fields: Fields) -> list[list[int]]:
        fields.required("prompt")
        prompt = fields.any("prompt")
        prompts = prompt if _is_list_of(prompt, (str, list)) else [prompt]
        if not all((isinstance(one, str) and one) or _is_list_of(one, int) for one in prompts):
            fields.refuse("prompt", "a string, a list of token ids, or a list of those, not empty")
        return [
            self._model.tokenize(_check.text("prompt", one)) if isinstance(one, str) else one
            for one in prompts
        ]

    def choice(self, generation: Generation) -> dict[str, Any]:
        return {"text": generation.text, "logprobs": self._shape(generation.logprobs)}

    def beginning(self, index: int) -> dict[str, Any] | None:
        if not self._echo:
            return None
        return {"text": self._model.detokenize(self.prompts[index // self.n]), "logprobs": None}

    def part(self, chunk: Chunk) -> dict[str, Any]:
        logprobs = [] if chunk.logprobs is None else [chunk.logprobs]
        return {"text": chunk.text, "logprobs": self._shape(logprobs)}

    def ending(self) -> dict[str, Any]:
        return {"text": "", "logprobs": None}

    def _shape(self, logprobs: Iterable[TokenLogprobs]) -> dict[str, Any] | None:
        if self._logprobs is None:
            return None
        text = self._model.token_text
        shaped: dict[str, Any] = {"tokens": [], "token_logprobs": [], "top_logprobs": []}
        for one in logprobs:
            shaped["tokens"].append(text(one.token))
            shaped["token_logprobs"].append(finite(one.logprob))
            shaped["top_logprobs"].append({text(token): finite(of) for token, of in one.top})
        return shaped


def _is_list_of(value: Any, kind: type | tuple[type, ...]) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, kind) and not isinstance(one, bool) for one in value)
    )
