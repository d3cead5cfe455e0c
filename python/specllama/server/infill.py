"""/infill: fills the gap between two texts, in the form of llama.cpp's server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from specllama import Generation, Handle, SpecllamaError, _check
from specllama.requests.options import GenerateOptions
from specllama.server.call import Call, event
from specllama.server.error import ApiError
from specllama.server.fields import Fields
from specllama.server.sampling import most_tokens
from specllama.server.timings import timings

_DEFAULTS: GenerateOptions = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
"""Defaults of llama.cpp's server."""


class Infill(Call):
    """A request to /infill."""

    prompt_field = "input_prefix"

    def _own_options(self, fields: Fields) -> GenerateOptions:
        defaults = {name: value for name, value in _DEFAULTS.items() if name not in fields}
        most = most_tokens(fields, "n_predict", default=self._most_tokens)
        # An editor that asks for 0 tokens wants the prompt decoded ahead of its next request.
        self._only_reads = most == 0
        return {**defaults, "max_tokens": most or (1 if self._only_reads else None)}  # type: ignore[typeddict-item]

    def _read_prompts(self, fields: Fields) -> list[list[int]]:
        if not self._model.has_infill:
            raise ApiError(
                400, "The model has no tokens for filling in the middle.", code="not_supported"
            )
        fields.required("input_prefix")
        fields.required("input_suffix")
        before, prompt, after = (
            _check.text(name, fields.text(name))
            for name in ("input_prefix", "prompt", "input_suffix")
        )
        # At most half of the context is kept free for the answer, even if more is asked for.
        n_most = min(self._options["max_tokens"] or 256, self._model.n_ctx // 2)
        room = max(self._model.n_ctx - n_most - 1, 4)
        infill = self._model.render_infill(
            before + prompt,
            after,
            _files(fields),
            max_prompt=room if self._max_prompt is None else min(room, self._max_prompt),
        )
        self._options["reference"] = infill.left_out
        return [infill.tokens]

    async def whole(self, handles: Sequence[Handle]) -> dict[str, Any]:
        generation = await handles[0]
        text = "" if self._only_reads else generation.text
        return self._body(text) | self._end(generation)

    async def events(self, handles: Sequence[Handle]) -> AsyncGenerator[bytes, None]:
        (handle,) = handles
        begun = False
        try:
            while chunks := await handle.next_chunks():
                begun = True
                if not self._only_reads:
                    yield b"".join(event(self._body(chunk.text)) for chunk in chunks)
            yield event(self._body("") | self._end(await handle))
        except SpecllamaError as error:
            if not begun:
                raise
            yield event(ApiError.of(error, self.given).body)

    def _body(self, text: str) -> dict[str, Any]:
        return {"index": 0, "content": text, "stop": False, "model": self._name}

    def _end(self, generation: Generation) -> dict[str, Any]:
        stats = generation.stats
        n = stats.generated_tokens
        return {
            "stop": True,
            "stop_type": _stop_type(generation),
            "stopping_word": generation.stop_string or "",
            "truncated": False,
            "tokens_predicted": n,
            "tokens_evaluated": stats.prompt_tokens,
            "tokens_cached": stats.prompt_tokens + n,
            "generation_settings": {"n_ctx": self._model.n_ctx, "seed": stats.seed},
            "timings": timings(stats),
        }


def _stop_type(generation: Generation) -> str:
    if generation.stop_string is not None:
        return "word"
    return "eos" if generation.finish_reason == "stop" else "limit"


def _files(fields: Fields) -> list[tuple[str, str]]:
    """Return the names and texts in `input_extra`."""
    given = fields.any("input_extra") or []
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        fields.refuse("input_extra", 'a list of {"filename": ..., "text": ...}')
    parts = [Fields(one, f"input_extra[{i}]") for i, one in enumerate(given)]
    for part in parts:
        part.required("text")
    return [(part.text("filename", "tmp"), part.text("text")) for part in parts]
