"""/v1/completions: prompts as text or token ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from specllama import Chunk, GenerateOptions, Generation, _check
from specllama._core import TokenLogprobs
from specllama.server.body.fields import Fields
from specllama.server.body.limits import MOST_CHOICES
from specllama.server.body.sampling import most_tokens
from specllama.server.error import ApiError
from specllama.server.llama_server.infill import infill_prompt
from specllama.server.logprobs import MOST_LOGPROBS, TextOffsets, finite, token_name
from specllama.server.openai.choices import ChoicesEndpoint

_DEFAULT_MAX_TOKENS = 16  # as in the OpenAI API


class Completion(ChoicesEndpoint):
    """A request to /v1/completions."""

    kind = chunk_kind = "text_completion"
    id_prefix = "cmpl-"
    prompt_field = "prompt"

    def _own_options(self, fields: Fields) -> GenerateOptions:
        if fields.integer("best_of", low=1, high=MOST_CHOICES) not in (None, self.n):
            fields.refuse("best_of", "equal to n (only returned answers are generated)")
        self._echo = fields.flag("echo")
        if self._echo and "suffix" in fields:
            raise ApiError(400, "echo and suffix exclude each other.", param="echo")
        options: GenerateOptions = {
            "max_tokens": most_tokens(
                fields,
                "max_tokens",
                "n_predict",
                default=_check.first(self._most_tokens, _DEFAULT_MAX_TOKENS),
            ),
        }
        self._offsets: defaultdict[int, TextOffsets] = defaultdict(TextOffsets)  # by choice
        self._logprobs = fields.integer("logprobs", low=0, high=MOST_LOGPROBS)
        if self._logprobs is not None:
            if self._echo:
                raise ApiError(
                    400,
                    "echo and logprobs exclude each other: the prompt has no log-probabilities.",
                    param="logprobs",
                )
            options["logprobs"] = self._logprobs
        return options

    def _read_prompts(self, fields: Fields) -> list[list[int]]:
        fields.required("prompt")
        prompt = fields.any("prompt")
        prompts = prompt if _is_list_of(prompt, (str, list)) else [prompt]
        self._check_choices(len(prompts))
        if not all((isinstance(one, str) and one) or _is_list_of(one, int) for one in prompts):
            fields.refuse(
                "prompt", "a non-empty string, a non-empty list of token ids, or a list of these"
            )
        self._given: list[str | list[int]] = prompts
        if suffix := fields.text("suffix"):
            if not all(isinstance(one, str) for one in prompts):
                fields.refuse("prompt", "text if there is a suffix")
            texts = [_check.text("prompt", one) for one in prompts]
            _check.text("suffix", suffix)
            return [infill_prompt(self._model, one, suffix) for one in texts]
        return [
            self._model.tokenize(_check.text("prompt", one)) if isinstance(one, str) else one
            for one in prompts
        ]

    def _choice(self, index: int, generation: Generation, chunks: list[Chunk]) -> dict[str, Any]:
        text = self._echoed(index) + generation.text
        return {"text": text, "logprobs": self._shape(index, generation.logprobs)}

    def _beginning(self, index: int) -> list[dict[str, Any]]:
        return [{"text": self._echoed(index), "logprobs": None}] if self._echo else []

    def _echoed(self, index: int) -> str:
        """Return the prompt of a choice as text, if the answer begins with it; else ""."""
        if not self._echo:
            return ""
        prompt = self._given[index // self.n]
        return prompt if isinstance(prompt, str) else self._model.detokenize(prompt)

    def _parts(self, index: int, chunk: Chunk) -> list[dict[str, Any]]:
        logprobs = [] if chunk.logprobs is None else [chunk.logprobs]
        return [{"text": chunk.text, "logprobs": self._shape(index, logprobs)}]

    def _ending(self) -> dict[str, Any]:
        return {"text": "", "logprobs": None}

    def _shape(self, index: int, logprobs: Iterable[TokenLogprobs]) -> dict[str, Any] | None:
        if self._logprobs is None:
            return None
        names = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
        shaped: dict[str, list[Any]] = {name: [] for name in names}
        for one in logprobs:
            piece = self._model.token_bytes(one.token)
            shaped["tokens"].append(token_name(piece))
            shaped["text_offset"].append(self._offsets[index].push(piece))
            shaped["token_logprobs"].append(finite(one.logprob))
            shaped["top_logprobs"].append({
                token_name(self._model.token_bytes(token)): finite(of) for token, of in one.top
            })  # fmt: skip
        return shaped


def _is_list_of(value: Any, kind: type | tuple[type, ...]) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, kind) and not isinstance(one, bool) for one in value)
    )
