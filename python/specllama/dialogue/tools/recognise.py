"""Recognises the format of calls that a model was trained on."""

from __future__ import annotations

from dataclasses import replace

from specllama.dialogue.tools.derive import derived, manner_of
from specllama.dialogue.tools.format import CallFormat
from specllama.dialogue.tools.known import BY_TEXT, FALLBACK, HARMONY, HERMES
from specllama.dialogue.tools.probe import Probe
from specllama.dialogue.tools.shape import Shape
from specllama.errors import SpecllamaError
from specllama.model.chat_template import ChatTemplate
from specllama.model.marks import NAME


def call_format(template: ChatTemplate) -> CallFormat:
    """Return the format in which a chat template writes calls. If it writes none: the format of the
    model if it is known here, else that of Hermes, which the prompt then describes."""
    found = _derived(template)
    if found is None:
        known = (one for text, one in BY_TEXT.items() if text in template.source)
        found = next(known, FALLBACK)
    return found if found.describes else replace(found, role=_role(template))


def _derived(template: ChatTemplate) -> CallFormat | None:
    manner = manner_of(template)
    if manner is None:
        return None
    probe = Probe(template, manner)
    found = derived(probe, template.marks)
    if found is None:
        return None
    return CallFormat(
        _with_variants(found.shape),
        "template",
        found.parallel,
        replace(manner, written=found.written),
        probe.describes(),
    )


def _with_variants(shape: Shape) -> tuple[Shape, ...]:
    """Return a shape, and other shapes that such models also write."""
    if (shape.head, shape.tail) == (HERMES[0].head, HERMES[0].tail):
        return (shape, *HERMES[1:])
    if f"to=functions.{NAME}<|channel|>" in shape.head:
        return (shape, HARMONY)
    return (shape,)


def _role(template: ChatTemplate) -> str:
    """Return the role for a message that describes tools."""
    try:
        template.render([{"role": "system", "content": "!"}, {"role": "user", "content": "?"}])
    except SpecllamaError:
        return "user"
    return "system"
