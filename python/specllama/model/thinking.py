"""The thoughts (reasoning) that a model writes before its answer, and the texts around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specllama.model.marks import TAG, closing, common_beginning

KEYS = ("reasoning_content", "reasoning", "thinking")
"""Fields of a message from which templates read its thought."""

_SHORTEST = 8
"""Fewest characters of an opening without a tag."""

_ASKED, _THOUGHT, _SAID = "Pquestionq", "Pthoughtq", "Pansweredq"
_FUNCTION = {"name": "Ptoolq", "arguments": {"key": _SAID}}
_CALL = {"id": "identity1", "type": "function", "function": _FUNCTION}
_RESULT = {"role": "tool", "tool_call_id": "identity1", "name": "Ptoolq", "content": "!"}


@dataclass(frozen=True)
class Thinking:
    """The texts around a model's thoughts.

    Attributes:
        opening: The text before a thought; the template may already have written it.
        closing: The text after it; the answer follows.
        key: The field of a message from which the template reads its thought; "content": the
            thought is in the text itself, between opening and closing.
    """

    opening: str
    closing: str
    key: str = KEYS[0]


@dataclass(frozen=True)
class AnswerMarks:
    """The texts around the parts of an answer.

    Attributes:
        thinking: Those around thoughts; None: the template has no thoughts.
        wrappers: Other texts that are not part of the answer.
        header: The wrapper between a thought and the text after it; "": none.
    """

    thinking: Thinking | None
    wrappers: tuple[str, ...] = ()
    header: str = ""


_FINAL = "<|channel|>final<|message|>"
_HARMONY = ("<|channel|>commentary<|message|>", "<|end|>")
"""The texts around what gpt-oss writes before a call; its template does not show them."""

Render = Callable[[Sequence[Mapping[str, Any]], bool], str | None]
"""Renders messages, with the beginning of an answer if True; None: the template refuses them."""

_KNOWN = (
    Thinking("<think>", "</think>"),
    Thinking("[THINK]", "[/THINK]"),
    Thinking("<seed:think>", "</seed:think>"),
)


def answer_marks(source: str, render: Render) -> AnswerMarks:
    """Return the texts around the parts of an answer.

    They are found by rendering a message with a thought. Many templates only remove old thoughts;
    their tags are in a list here.

    Args:
        source: The chat template.
        render: Renders messages by it.
    """
    asked = {"role": "user", "content": _ASKED}
    plain, begun = (_behind(render([asked], wanted)) for wanted in (False, True))
    header = begun.removeprefix(plain).strip()
    before, _, after = _behind(render([asked, _said()], False)).partition(_SAID)
    turn = _Turn(begun, header, before)
    thinking = _written(render, turn)
    if thinking is None or not TAG.search(thinking.opening):
        thinking = _known(source, render) or thinking
    begin = turn.rest_of(before)
    if thinking is not None:
        begin = begin.rpartition(thinking.closing)[2].strip()
    if not TAG.search(begin):
        return AnswerMarks(thinking)
    if not TAG.search(header) or (thinking is not None and thinking.opening in header):
        header = ""
    found = [begin, closing(after, _n_tags(begin)).strip(), header]
    if begin == _FINAL:
        found += _HARMONY
    return AnswerMarks(thinking, tuple(one for one in dict.fromkeys(found) if one), header)


@dataclass(frozen=True)
class _Turn:
    """The texts before an answer.

    Attributes:
        begun: The text before an answer that the model will write.
        header: The part of it that is not the end of the user's turn.
        before: The text before an earlier answer without a thought.
    """

    begun: str
    header: str
    before: str

    def rest_of(self, text: str) -> str:
        """Return a text between question and answer without the beginning of the turn."""
        if self.begun and text.startswith(self.begun):
            return text.removeprefix(self.begun)
        return text.removeprefix(common_beginning(text, self.begun))

    def opening(self, text: str) -> str:
        """Return the opening of a thought, given the text before it."""
        if text.startswith(self.begun) and (rest := text.removeprefix(self.begun).strip()):
            return rest
        if rest := text.removeprefix(common_beginning(text, self.before)).strip():
            return rest
        rest = self.begun.removeprefix(common_beginning(self.begun, text)).strip()
        if rest and not TAG.search(rest):
            return rest
        tags = list(TAG.finditer(text))
        if not tags:
            return ""
        # A tag that occurs more than once is ambiguous without the tag before it.
        several = len(tags) > 1 and (text.count(tags[-1][0]) > 1)
        return text[tags[-2 if several else -1].start() :].strip()


def _written(render: Render, turn: _Turn) -> Thinking | None:
    """Return the texts that a template writes around a thought; None if it writes no thoughts."""
    for key in KEYS:
        for more in ({}, {"content": "", "tool_calls": [_CALL]}):
            messages = [{"role": "user", "content": _ASKED}, {**_said(), key: _THOUGHT, **more}]
            text = _behind(render([*messages, _RESULT] if more else messages, False))
            before, found, after = text.partition(_THOUGHT)
            opening = turn.opening(before) if found else ""
            end = _closing(opening, after.partition(_SAID)[0], turn.header)
            if end and (TAG.search(opening) or len(opening) >= _SHORTEST):
                return Thinking(opening, end, key)
    return None


def _closing(opening: str, after: str, header: str) -> str:
    if n := _n_tags(opening):
        return closing(after, n, (header,) if header else ()).strip()
    return after.strip()


def _known(source: str, render: Render) -> Thinking | None:
    asked = {"role": "user", "content": _ASKED}
    for one in _KNOWN:
        if one.closing in source or one.opening in source:
            in_field = _said(**dict.fromkeys(KEYS, _THOUGHT))
            in_text = _said(content=f"{one.opening}{_THOUGHT}{one.closing}{_SAID}")
            shown = [
                _THOUGHT in (render([asked, said], False) or "") for said in (in_field, in_text)
            ]
            return replace(one, key="content" if shown == [False, True] else one.key)
    return None


def _n_tags(text: str) -> int:
    return len(TAG.findall(text))


def _said(**more: str) -> dict[str, Any]:
    return {"role": "assistant", "content": _SAID, **more}


def _behind(text: str | None) -> str:
    return (text or "").rpartition(_ASKED)[2]
