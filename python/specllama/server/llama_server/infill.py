"""/infill: fills the gap between two texts, in llama-server's format."""

from __future__ import annotations

from specllama import _check
from specllama._field import INT32
from specllama.model.loaded_model import LoadedModel
from specllama.server.body.fields import Fields
from specllama.server.body.messages import objects
from specllama.server.error import ApiError
from specllama.server.llama_server.native import NativeEndpoint


class Infill(NativeEndpoint):
    """A request to /infill."""

    prompt_field = "input_prefix"

    def _read_prompt(self, fields: Fields) -> list[int]:
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
        # At most half of the context is reserved for the answer, even if the request wants more.
        n_most = min(_check.first(self._options["max_tokens"], 256), self._model.n_ctx // 2)
        room = max(self._model.n_ctx - n_most - 1, 4)
        infill = self._model.render_infill(
            before + prompt,
            after,
            _files(fields),
            max_prompt=room if self._max_prompt is None else min(room, self._max_prompt),
        )
        self._options["reference"] = infill.left_out
        return infill.tokens


def infill_prompt(model: LoadedModel, prompt: str, suffix: str) -> list[int]:
    """Return the token ids of a prompt for the text before a suffix. The texts are not shortened: a
    prompt that does not fit is refused later, as without a suffix. Raises ApiError."""
    if not model.has_infill:
        raise ApiError(
            400,
            "The model has no tokens for filling in the middle; leave suffix out.",
            param="suffix",
        )
    return model.render_infill(prompt, suffix, max_prompt=INT32).tokens


def _files(fields: Fields) -> list[tuple[str, str]]:
    """Return the names and texts in `input_extra`."""
    if "input_extra" not in fields:
        return []
    parts = objects(fields, "input_extra", "files")
    for part in parts:
        part.required("text")
    return [(part.text("filename", "tmp"), part.text("text")) for part in parts]
