"""What is asked of a session: a prompt and its options, checked."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from specllama import _check, _core
from specllama.errors import ArgumentError
from specllama.loaded_model import LoadedModel, piece
from specllama.options import CoreOptions, GenerateOptions, core_options
from specllama.stream import Record
from specllama.trace import shortened


@dataclass(frozen=True)
class Request:
    """A generation to be.

    Attributes:
        tokens: The prompt.
        text: The same as text, where the result needs it; else "".
        options: The options, as the core takes them.
        reference: Tokens that may be copied from.
        replayed: Tokens to generate, whatever the model chooses; none: as it chooses.
    """

    tokens: list[int]
    text: str
    options: CoreOptions
    reference: list[int]
    replayed: list[int]

    @classmethod
    def make(
        cls,
        model: LoadedModel,
        prompt: str | Iterable[int],
        options: GenerateOptions,
        replayed: Iterable[int] = (),
    ) -> Request:
        """Check and tokenize. Arguments and errors are those of `SpecSession.generate`."""
        checked = core_options(**options)
        reference = checked.reference
        if isinstance(reference, str):
            reference = model.tokenize(reference, add_special=False)
        if isinstance(prompt, str):
            if not prompt:
                raise ArgumentError("The prompt is empty; give at least one character.")
            tokens, text = model.tokenize(prompt), prompt
        else:
            tokens, text = _check.tokens("prompt", prompt), ""
        if (checked.echo or checked.trace) and not text:
            text = model.detokenize(tokens)
        return cls(tokens, text, checked, reference, list(replayed))

    @classmethod
    def choices(
        cls, model: LoadedModel, prompt: str | Iterable[int], options: GenerateOptions, n: int
    ) -> list[Request]:
        """Return n requests that differ in their seeds: the given or a fresh one, and others made
        of it."""
        seed = options.get("seed")
        if seed is None:
            seed = secrets.randbits(64)
        first = cls.make(model, prompt, {**options, "seed": seed})
        return [first._with_seed(_core.choice_seed(seed, i)) for i in range(n)]

    def _with_seed(self, seed: int) -> Request:
        sampling = self.options.sampling.with_seed(seed)
        return replace(self, options=self.options._replace(sampling=sampling))

    def check(self, core: _core.Session) -> None:
        """Raise ArgumentError if it can never begin, but for its grammar."""
        core.check(self.tokens, self._core_options())

    def _core_options(self) -> _core.GenerateOptions:
        return _core.GenerateOptions(
            max_tokens=self.options.max_tokens,
            stop=self.options.stop,
            sampling=self.options.sampling,
            reference=self.reference,
            replayed=self.replayed,
            trace=self.options.trace,
        )

    def begin(self, core: _core.Session) -> Record:
        """Begin it in the core."""
        return Record(
            core.start(self.tokens, self._core_options()),
            echo=self.text if self.options.echo else "",
            prompt=shortened(self.text) if self.options.trace else "",
            # Not a method of the session, which would then hold itself.
            piece=partial(piece, core) if self.options.trace else None,
        )
