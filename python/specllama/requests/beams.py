"""Beam search: finds the texts that score best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from typing_extensions import TypedDict

from specllama import _check, _core
from specllama._core import Stats
from specllama._field import Field, completed, described
from specllama.errors import ArgumentError
from specllama.model.loaded_model import LoadedModel
from specllama.model.media_prompt import MediaPrompt
from specllama.requests.options import FIELDS
from specllama.requests.request import Request, are_several
from specllama.requests.stream import FinishReason

EarlyStopping = bool | Literal["never"]


@completed
class BeamOptions(TypedDict, total=False):
    """Options of `SpecSession.beam_search`. All are optional keyword arguments. Options that
    `GenerateOptions` also has mean the same here. The context must have room for max_tokens of each
    beam.
    """

    n: int
    length_penalty: float
    early_stopping: EarlyStopping
    max_tokens: int | None
    stop: str | Iterable[str] | None
    echo: bool
    reference: str | Iterable[int] | None


_SHARED = {"max_tokens", "stop", "echo", "reference", "cache_prompt", "seed"}
"""Options of a generation that a beam search accepts; `seed` has no effect on it."""


def _early_stopping(name: str, value: Any) -> _core.EarlyStopping:
    if isinstance(value, bool):
        return _core.EarlyStopping.yes if value else _core.EarlyStopping.no
    if not isinstance(value, str) or value != "never":
        raise ArgumentError(f'{name} must be True, False or "never", not {_check.quoted(value)}.')
    return _core.EarlyStopping.never


_OF_SEARCH = {one.name: Field.of(one) for one in _core.beam_options() if one.help}
_OF_SEARCH["early_stopping"] = replace(
    _OF_SEARCH["early_stopping"],
    check=_early_stopping,
    help="When to stop once as many texts have ended as there are beams. True: at once. False: "
    "when no unfinished text, if it ended where it is, would score more than the worst ended "
    'one. "never": when none could at any length.',
    by_default="False",
)
_N = Field(
    "n", _check.integer, "Number of beams to return, the best first.", by_default="all of n_beams"
)

_ALL = {**FIELDS, **_OF_SEARCH, "n": _N}
BeamOptions.__doc__ = f"{(BeamOptions.__doc__ or '').rstrip()}\n" + described(
    {name: _ALL[name] for name in BeamOptions.__annotations__}, {"n": "Attributes"}
)


@dataclass(frozen=True)
class Beam:
    """A text found by a beam search.

    Attributes:
        text: The text, without the stop string that ended it; with `echo`, the prompt before it.
        tokens: Its token ids, without an end-of-generation token.
        score: The rank of a text: logprob / length ** length_penalty, where length counts all
            tokens, including the one that ended the text.
        logprob: Natural logarithm of the probability of all tokens, including the one that ended
            the text.
        finish_reason: "stop" (end-of-generation token or stop string) or "length" (max_tokens).
        stats: Counts and times of the whole search, the same for all its beams. A step adds a token
            to every beam. `generated_tokens` counts the steps, `rounds` the target's decodes,
            `drafted` the tokens decoded ahead of the search, and `accepted` those of them that a
            beam used.
    """

    text: str
    tokens: list[int]
    score: float
    logprob: float
    finish_reason: FinishReason
    stats: Stats

    def __str__(self) -> str:
        return self.text


def search(
    model: LoadedModel,
    backend: _core.Session,
    prompt: str | Iterable[int],
    n_beams: int,
    options: Mapping[str, Any],
) -> list[Beam]:
    """Return the beams. Arguments and errors are those of `SpecSession.beam_search`."""
    if are_several(prompt):
        raise ArgumentError("beam_search takes one prompt at a time, not a list of them.")
    rest = {"n_beams": n_beams, **options}
    of_search = {
        name: _OF_SEARCH[name].check(name, rest.pop(name)) for name in _OF_SEARCH.keys() & rest
    }
    n = rest.pop("n", None)
    n = n_beams if n is None else _check.integer("n", n, low=1, high=of_search["n_beams"])
    for name, value in rest.items():
        # Request.make, below, refuses names that are not options at all.
        if name in FIELDS and name not in _SHARED and _asks(name, value):
            raise ArgumentError(
                f"{name} is not supported by beam_search, which ranks texts by the model's own "
                "probabilities; leave it out."
            )
    if isinstance(prompt, MediaPrompt):
        raise ArgumentError("beam_search takes no images and sounds; leave them out.")
    request = Request.make(model, prompt, rest)  # type: ignore[arg-type]
    result = backend.beam_search(
        request.tokens,
        _core.BeamOptions(
            **of_search,
            max_tokens=request.options["max_tokens"],
            stop=request.options["stop"],
            reference=request.reference,
            cache_prompt=request.options["cache_prompt"],
        ),
    )
    echo = request.text if request.options["echo"] else ""
    return [
        Beam(
            text=echo + one.text,
            tokens=one.tokens,
            score=one.score,
            logprob=one.logprob,
            finish_reason=one.finish_reason,
            stats=result.stats,
        )
        for one in result.beams[:n]
    ]


def _asks(name: str, value: Any) -> bool:
    """Return whether a value of an option differs in effect from the default. Raises ArgumentError
    if it is of a wrong type."""
    field = FIELDS[name]
    return _check.differ(field.check(name, value), field.default)
