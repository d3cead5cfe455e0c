"""Reads the body that opens a generation."""

from __future__ import annotations

import secrets
from typing import Any, cast

from specllama import GenerateOptions, SpecSession, _check
from specllama.model.loaded_model import backend_of
from specllama.requests.options import FIELDS
from specllama.server.body.fields import Fields
from specllama.server.error import ApiError
from specllama.server.settings import Settings
from specllama.server.verify.draft import ids_of

_NOT_HERE = (
    "media", "trace", "echo", "reference", "remember", "stop", "json_schema", "acceptance",
    "lenience", "id_slot", "spec_length", "spec_type",
)  # fmt: skip
"""Refused options: they concern only the client, or would make the text depend on drafts."""


class Opening:
    """The options and the prompt of a generation, read from a request's fields. Raises ApiError.

    Attributes:
        prompt: Token ids of the prompt.
        was_text: Whether the prompt was sent as text.
        generated: Token ids of an earlier generation that broke off.
        options: Options of the generation.
    """

    def __init__(self, session: SpecSession, fields: Fields, settings: Settings) -> None:
        # A restarted server may have another model.
        vocabulary = fields.text("vocabulary")
        if vocabulary not in ("", f"{backend_of(session).vocabulary:016x}"):
            raise ApiError(
                400,
                "The target's vocabulary is not the client's; open the session again.",
                param="vocabulary",
            )
        fields.required("prompt")
        given = fields.any("prompt")
        self.was_text = isinstance(given, str)
        if self.was_text and given:
            self.prompt = session.tokenize(_check.text("prompt", given))
        else:
            self.prompt = ids_of(fields, "prompt")
        most = settings.max_prompt
        if most is not None and len(self.prompt) > most:
            raise ApiError(
                400,
                f"The prompt has {len(self.prompt)} tokens; at most {most} are allowed.",
                param="prompt",
                code="context_length_exceeded",
            )
        self.generated = ids_of(fields, "generated")
        self.options = _options(fields)
        self.options.setdefault("seed", secrets.randbits(64))  # one seed for all rounds


def names_of(fields: Fields) -> list[str]:
    """Return the names of all fields in a body, and of all options."""
    options = fields.any("options")
    return [*fields.given, *(options if isinstance(options, dict) else ())]


def _options(opening: Fields) -> GenerateOptions:
    fields = opening.object("options")
    options: dict[str, Any] = {**fields.given}
    if (opening.any("options") or {}).get(
        "max_tokens", 0
    ) is None:  # null: until the context is full
        options["max_tokens"] = None
    for name in options:
        field = f"options.{name}"
        if name not in FIELDS:
            raise ApiError(400, f"There is no option {name!r:.80}.", param=field)
        if name in _NOT_HERE:
            raise ApiError(
                400, f"{field} is not an option of the target; leave it out.", param=field
            )
    if "logit_bias" in options:
        options["logit_bias"] = _biases(fields)
    return cast(GenerateOptions, options)


def _biases(fields: Fields) -> dict[int, float]:
    """Return biases by token, read from pairs. null means minus infinity, which JSON cannot
    express."""
    try:
        pairs = [(token, float("-inf") if bias is None else bias)
                 for token, bias in fields.any("logit_bias")]  # fmt: skip
        return dict(pairs)
    except (TypeError, ValueError):
        fields.refuse("logit_bias", "a list of pairs of a token id and a number or null")
