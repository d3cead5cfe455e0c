"""A chat template given by the user, and the arguments that every chat passes to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from specllama import _check, _files
from specllama.errors import ArgumentError, ModelError
from specllama.model.chat_template import ChatTemplate, template_arguments


@dataclass(frozen=True)
class TemplateOptions:
    """A chat template given by the user, and the arguments that every chat passes to it.

    Attributes:
        source: Jinja source; None: the model's own template.
        arguments: Arguments for the template by name.
    """

    source: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def checked(cls, template: Any, arguments: Any) -> TemplateOptions:
        """Check the options given to a session. Raises ArgumentError.

        Args:
            template: Jinja source, or the path of its file; None: the model's own.
            arguments: As `template_args` of `SpecSession`.
        """
        source = None if template is None else _source(template)
        if source is not None:
            try:  # a broken template is reported now, not with the first message
                ChatTemplate(source, bos="", eos="")
            except ModelError as error:
                why = str(error).removeprefix("The model's chat template ")
                raise ArgumentError(f"chat_template {why}") from None
        return cls(source, dict(template_arguments(arguments)))


def _source(template: Any) -> str:
    if isinstance(template, os.PathLike):
        source = _files.read_text(_check.path("chat_template", template))
    else:
        source = _check.text("chat_template", template)
    if "{" not in source:  # most likely a path
        raise ArgumentError(
            "chat_template has no Jinja in it; give the template, or its path as a pathlib.Path."
        )
    return source
