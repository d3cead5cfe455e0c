"""Derives the shape of calls from conversations that a chat template renders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from specllama.dialogue.tools.manner import Manner
from specllama.dialogue.tools.probe import CONTENT, KEYS, NAMES, OTHER, VALUES, Probe
from specllama.dialogue.tools.shape import KINDS, Parameters, Shape
from specllama.model.chat_template import ChatTemplate
from specllama.model.marks import (
    ID,
    KEY,
    NAME,
    TAG,
    Repeated,
    closing,
    common_beginning,
    n_openers,
    units,
)
from specllama.model.thinking import AnswerMarks

_SPECIAL = 'P<b>&"q'
_ARGUMENTS = {KEYS[0]: VALUES["string"], KEYS[1]: OTHER}


def manner_of(template: ChatTemplate) -> Manner | None:
    """Return the form in which a chat template accepts calls; None if it does not write calls."""
    ways = product(("tools", "functions"), (False, True), ("", None), (False, True))
    for tools, texts, empty, short_ids in ways:
        manner = Manner(texts, empty, short_ids, tools)
        text = Probe(template, manner).called(_ARGUMENTS)
        if text and all(one in text for one in (NAMES[0], *KEYS)):
            return manner
    return None


@dataclass(frozen=True)
class Derived:
    """The result for a template.

    Attributes:
        shape: The shape of its calls.
        parallel: Whether it writes several calls in one answer.
        written: Types of values that it writes in Python's form.
    """

    shape: Shape
    parallel: bool
    written: frozenset[str]


def derived(probe: Probe, marks: AnswerMarks) -> Derived | None:
    """Return the shape of a template's calls; None if it is unknown.

    Args:
        probe: Renders conversations.
        marks: The texts around the other parts of answers.
    """
    said = probe.said() or ("", "")
    one = _pieces(probe, probe.called(_ARGUMENTS), 1)
    if one is None:
        return None
    two = _pieces(probe, probe.called(_ARGUMENTS, _ARGUMENTS), 2)
    first = _beginning(probe, one, said, marks)
    ends = _ends(probe, first, said[1], marks)
    last = (two or one).texts[-1]
    for end in ends:
        first = first.removeprefix(end).lstrip()
    parameters, written = None, frozenset[str]()
    between = two.texts[1] if two is not None else None
    if one.values:
        name_end = first.rfind(NAME) + 1
        between_values = one.values[1].replace(KEYS[0], KEY)
        last = last.replace(KEYS[1], KEY)
        inner = Repeated.of(first[name_end:], between_values, last)
        parameters, written = _parameters(probe, inner, one.values[0])
        first = first.removesuffix(inner.begin)
        last = last.removeprefix(inner.end)
        if between is not None:
            between = between.replace(KEYS[1], KEY)
            between = between.removeprefix(inner.end).removesuffix(inner.begin)
    if between is None:
        tail = closing(last, n_openers(first), ends)
        return Derived(Shape(first, tail, parameters=parameters, spread=one.spread), False, written)
    outer = Repeated.of(first, between, last)
    shape = Shape(
        outer.begin, outer.end, outer.outer, outer.separator,
        closing(outer.after, n_openers(outer.outer), ends), parameters, one.spread,
    )  # fmt: skip
    if NAME not in shape.head:
        return None
    if not shape.closing:  # white space after the last call may be left out
        tail = shape.tail.rstrip()
        blanks = shape.tail[len(tail) :]
        shape = replace(shape, tail=tail, separator=blanks + shape.separator, closing=blanks)
    others = (*marks.wrappers, *([marks.thinking.opening] if marks.thinking else []))
    if any(one.startswith(shape.openings(NAMES)[0]) for one in others):
        shape = replace(shape, trigger=shape.opening + shape.head.partition(NAME)[0])
    return Derived(shape, True, written)


@dataclass(frozen=True)
class _Pieces:
    """A text cut at the arguments of its calls.

    Attributes:
        texts: The texts before, between and after the arguments.
        values: If the arguments are not JSON: the texts after the first name, and after its value.
        spread: Whether the arguments have line breaks.
    """

    texts: Sequence[str]
    values: tuple[str, str] | None
    spread: bool = False


def _pieces(probe: Probe, text: str | None, n: int) -> _Pieces | None:
    if text is None:
        return None
    found: list[str] = []
    values, spread, at = None, False, 0
    for i in range(n):
        name = text.find(NAMES[i], at)
        if name < 0:
            return None
        name += len(NAMES[i])
        if span := _json_span(text, name):
            spread = spread or "\n" in text[slice(*span)]
        else:
            places = _places(text, name)
            if places is None:
                return None
            span = places[0], places[-1]
            values = values or (text[places[1] : places[2]], text[places[3] : places[4]])
        found.append(text[at : span[0]])
        at = span[1]
    found.append(text[at:])
    return _Pieces([_slots(probe, i, one) for i, one in enumerate(found)], values, spread)


def _json_span(text: str, at: int) -> tuple[int, int] | None:
    """Return begin and end of the arguments if they are JSON; else None."""
    decoder = json.JSONDecoder()
    while (at := text.find("{", at)) >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except ValueError:
            value, end = None, at
        if value == _ARGUMENTS:
            return at, end
        at += 1
    return None


def _places(text: str, at: int) -> list[int] | None:
    """Return the positions after the tool's name: begin and end of the first key, of its value, of
    the second key and of its value."""
    found = []
    for key, value in _ARGUMENTS.items():
        for one in (key, value):
            at = text.find(one, at)
            if at < 0:
                return None
            found += [at, at + len(one)]
            at += len(one)
    return found


def _slots(probe: Probe, i: int, text: str) -> str:
    for n in (i - 1, i):
        if 0 <= n < len(NAMES):
            text = text.replace(NAMES[n], NAME).replace(probe.ids[n], ID)
    return text


def _beginning(probe: Probe, one: _Pieces, said: tuple[str, str], marks: AnswerMarks) -> str:
    """Return the text before the first call's arguments, without the turn's beginning."""
    begun, text = probe.begun(), one.texts[0]
    if begun and text.startswith(begun):
        text = text.removeprefix(begun)
    else:
        text = _behind_content(probe, said) or text.removeprefix(common_beginning(said[0], text))
    if marks.thinking is not None and marks.thinking.closing in text:
        text = text.rpartition(marks.thinking.closing)[2]
    text = text.lstrip()
    while found := next((one for one in marks.wrappers if text.startswith(one)), ""):
        text = text.removeprefix(found).lstrip()
    return text


def _behind_content(probe: Probe, said: tuple[str, str]) -> str:
    """Return the text between content and the first call's arguments; "" if there is none."""
    with_content = _pieces(probe, probe.called(_ARGUMENTS, content=CONTENT), 1)
    text = with_content.texts[0] if with_content is not None else ""
    if CONTENT not in text:
        return ""
    text = text.rpartition(CONTENT)[2]
    ended = common_beginning(said[1].strip(), text.strip())
    return text.lstrip().removeprefix(ended) if TAG.search(ended) else text


def _ends(probe: Probe, first: str, after: str, marks: AnswerMarks) -> tuple[str, ...]:
    """Return texts that end the turn or begin the next one."""
    for one in marks.wrappers:
        after = after.strip().removeprefix(one)
    end = units(after.strip())[:2]
    found = ["".join(end) if end[1:] and end[1].isalpha() else end[0]] if end else []
    tags = (one for one in TAG.findall(probe.begun()) if one not in first)
    found += [probe.eos] if probe.eos else []
    return (*found, *(one for one in tags if not any(end.startswith(one) for end in found)))


def _parameters(probe: Probe, inner: Repeated, opening: str) -> tuple[Parameters, frozenset[str]]:
    """Return the form of parameters, and the types whose values must be passed as texts."""
    openings, endings = {"string": opening}, {"string": inner.end}
    odd = set[str]()
    values: dict[str, str] = {}
    for kind in KINDS[1:]:
        text = probe.called({KEYS[0]: VALUES[kind], KEYS[1]: OTHER}) or ""
        span = text.partition(NAMES[0])[2].partition(KEYS[0])[2].partition(OTHER)[0]
        span = span.rpartition(KEYS[1] + opening)[0]
        span = span.removesuffix(inner.begin).removesuffix(inner.separator)
        values[kind] = span
        found = _value_in(span, VALUES[kind])
        if found is None:
            odd.add(kind)
            continue
        openings[kind], value, endings[kind] = found
        endings[kind] = endings[kind].replace(KEYS[0], KEY)
        if value != json.dumps(VALUES[kind]):
            odd.add(kind)
    for kind in odd - openings.keys():
        openings[kind], endings[kind] = openings["integer"], endings["integer"]
    untyped = openings["integer"] == opening and endings["integer"] == inner.end
    text = probe.called({KEYS[0]: _SPECIAL, KEYS[1]: OTHER}) or ""
    span = text.partition(NAMES[0])[2].partition(KEYS[0])[2].partition(KEYS[1])[0]
    span = span.removesuffix(inner.begin).removesuffix(inner.separator)
    around = span.replace(KEYS[0], KEY).partition(_SPECIAL)[::2]
    verbatim = around if untyped and around != (opening, inner.end) and _SPECIAL in span else None
    quote = opening.removeprefix(openings["integer"]) if not untyped else "'"
    parameters = Parameters(
        inner.begin, openings, endings, inner.separator,
        frozenset() if untyped else frozenset(odd), quote, verbatim,
    )  # fmt: skip
    return parameters, frozenset(odd) if untyped else frozenset()


def _value_in(span: str, value: Any) -> tuple[str, str, str] | None:
    """Return the text before a value, the written value, and the text after it."""
    for one in (json.dumps(value), json.dumps(value, separators=(",", ":")), str(value)):
        before, found, after = span.rpartition(one)
        if found:
            return before, found, after
    return None
