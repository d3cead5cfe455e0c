"""/completion: continues a prompt, in llama-server's format."""

from __future__ import annotations

from specllama import _check
from specllama.server.body.fields import Fields
from specllama.server.error import ApiError
from specllama.server.llama_server.native import NativeEndpoint


class NativeCompletion(NativeEndpoint):
    """A request to /completion."""

    prompt_field = "prompt"

    def _read_prompt(self, fields: Fields) -> list[int]:
        fields.required("prompt")
        prompt = fields.any("prompt")
        parts = prompt if isinstance(prompt, list) else [prompt]
        if not all(isinstance(one, (str, int)) and not isinstance(one, bool) for one in parts):
            fields.refuse("prompt", "a string, or a list of strings and token ids")
        # llama-server would take them as several prompts.
        if len(parts) > 1 and all(isinstance(one, str) for one in parts):
            fields.refuse("prompt", "one prompt (/v1/completions accepts several)")
        if len(parts) > self._model.n_ctx:  # even if each is only a token
            raise ApiError(
                400,
                f"prompt has {len(parts)} parts, but the context has {self._model.n_ctx} tokens.",
                param="prompt",
                code="context_length_exceeded",
            )
        tokens: list[int] = []
        for i, one in enumerate(parts):
            if isinstance(one, int):
                tokens.append(one)
            else:
                text = _check.text("prompt", one)
                tokens += self._model.tokenize(text, add_special=i == 0)
        return tokens
