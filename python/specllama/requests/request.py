"""A request to a session: a prompt and its options, checked."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from specllama import _check, _core
from specllama._arrays import is_array
from specllama.errors import ArgumentError
from specllama.formats.trace import shortened
from specllama.model.loaded_model import LoadedModel, piece
from specllama.model.media_prompt import MediaPrompt
from specllama.requests.marked_text import marked_prompt
from specllama.requests.options import GenerateOptions, checked
from specllama.requests.stream import GenerationState, MessageReader

_OPENING_TOKENS = 24
"""More tokens than the opening of a thought and the blanks after it have."""


@dataclass(frozen=True)
class Verification:
    """Additional data of a request that is one round of a text drafted elsewhere.

    Attributes:
        generated: Tokens generated before.
        draft: The draft to verify.
    """

    generated: _check.Tokens
    draft: _core.RequestDraft


@dataclass(frozen=True)
class Request:
    """A generation that has not begun.

    Attributes:
        tokens: The prompt.
        text: The prompt as text, if the result needs it; else "".
        options: Values of all options by name, in the form the core takes.
        reference: Tokens that the n-gram drafter may copy from.
        replayed: Tokens to generate whatever the model would choose; empty: the model chooses.
        verification: Set if the request is one round that verifies a draft.
        memory_owner: Owner of the request: drafts come only from earlier requests of this owner.
        reader: Parses the answer as a message; None if the request has no tools.
    """

    tokens: _check.Tokens
    text: str
    options: Mapping[str, Any]
    reference: _check.Tokens
    replayed: _check.Tokens
    verification: Verification | None = None
    memory_owner: int = 0
    reader: MessageReader | None = None

    @classmethod
    def make(
        cls,
        model: LoadedModel,
        prompt: str | Iterable[int],
        options: GenerateOptions,
        replayed: _check.Tokens | None = None,
    ) -> Request:
        """Check and tokenize. Arguments and errors are those of `SpecSession.generate`."""
        values = checked(options)
        if are_several(prompt):
            raise ArgumentError(
                "prompt is a list of prompts, but only generate takes several: give the list to "
                "it, or make one call for each."
            )
        reference = values["reference"]
        if isinstance(reference, str):
            reference = model.tokenize(reference, add_special=False)
        tokens: _check.Tokens
        media = values.pop("media")
        if isinstance(prompt, str):
            if not prompt:
                raise ArgumentError("The prompt is empty; give at least one character.")
            text = prompt
            tokens = model.tokenize(text) if media is None else marked_prompt(model, text, media)
        elif media is not None:
            raise ArgumentError("media is for a prompt that is a text; leave it out.")
        elif isinstance(prompt, MediaPrompt):
            tokens, text = prompt, ""
        else:
            tokens, text = _check.tokens("prompt", prompt), ""
        if (values["echo"] or values["trace"]) and not text:
            text = model.detokenize(tokens)
        if values["reasoning_budget"] >= 0:
            values |= _around_thought(model, tokens)
        return cls(tokens, text, values, reference, [] if replayed is None else replayed)

    @classmethod
    def choices(
        cls, model: LoadedModel, prompt: str | Iterable[int], options: GenerateOptions, n: int
    ) -> list[Request]:
        """Return n requests that differ in their seeds. The first has the given seed, or a fresh
        one; the others are derived from it."""
        first = cls.make(model, prompt, options)
        seed = first.options["seed"]
        if seed is None:
            seed = secrets.randbits(64)
        return [
            replace(first, options={**first.options, "seed": _core.choice_seed(seed, i)})
            for i in range(n)
        ]

    def check(self, backend: _core.Session) -> None:
        """Raise ArgumentError if the request could never begin. Its grammar is read here."""
        backend.check(self._prompt, self._core_options())

    @property
    def _prompt(self) -> _check.Tokens | _core.MediaPrompt:
        """The prompt, as the core takes it."""
        return self.tokens.core if isinstance(self.tokens, MediaPrompt) else self.tokens

    def _core_options(self) -> _core.GenerateOptions:
        of_core = {name: value for name, value in self.options.items() if name != "echo"}
        return _core.GenerateOptions(
            **of_core
            | {
                "reference": self.reference,
                "replayed": self.replayed,
                "generated": [] if self.verification is None else self.verification.generated,
                "draft": None if self.verification is None else self.verification.draft,
                "memory_owner": self.memory_owner,
            }
        )

    def begin(self, backend: _core.Session) -> GenerationState:
        """Begin the generation in the core."""
        return GenerationState(
            backend.start(self._prompt, self._core_options()),
            echo=self.text if self.options["echo"] else "",
            prompt=shortened(self.text) if self.options["trace"] else "",
            # A method of the session would make a reference cycle: the session holds the state.
            piece=partial(piece, backend) if self.options["trace"] else None,
            reader=self.reader,
        )


def are_several(prompt: Any) -> bool:
    """Return whether `prompt` is a list of prompts, and not one prompt given as token ids."""
    if not isinstance(prompt, (list, tuple)) or not prompt:
        return False
    return all(isinstance(one, (str, list, tuple)) or is_array(one) for one in prompt)


def _around_thought(model: LoadedModel, prompt: _check.Tokens) -> dict[str, str]:
    """Return the texts around the thought that begins the answer to a prompt. The opening is "" if
    the prompt already ends with it. Empty for a model without thoughts."""
    template = model.chat_template if model.has_chat_template else None
    if template is None or template.thinking is None:
        return {}
    end = [token for token in prompt[-_OPENING_TOKENS:] if token >= 0]  # without images
    text = model.detokenize(end, special=True)
    opening = "" if template.opened_thought(text) else template.thinking.opening
    return {"reasoning_opening": opening, "reasoning_closing": template.thinking.closing}
