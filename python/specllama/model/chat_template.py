"""Renders messages to a prompt with the model's chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from specllama import _check
from specllama.errors import ArgumentError, ModelError
from specllama.model.tainted_text import joined, plain_ranges, tainted
from specllama.model.thinking import AnswerMarks, Thinking, answer_marks

Message = Mapping[str, Any]
"""One message: {"role": "user", "content": "..."}, and other fields that the template reads. A
content may also be a list of parts, {"type": "text", "text": "..."}, or None. (`MediaReader` has
replaced images and sounds by texts.)"""


_SETTLED = frozenset((
    "messages", "add_generation_prompt", "bos_token", "eos_token", "raise_exception",
    "strftime_now", "self",
))  # fmt: skip
"""Names of the values that every template gets."""

_ROLES = ("system", "user", "assistant", "tool")

_THINKS = {"enable_thinking": True, "thinking": True}
"""Arguments that turn on thinking in templates."""

_PROBE = "\ufdd4"
"""A content that does not occur in any template."""

_UNUSED = ("functions", "function_call", "tools", "tool_choice")
"""Names whose value for a template is None if they are not given."""


class ChatTemplate:
    """A model's Jinja chat template.

    Args:
        source: The template; None if the model has none.
        bos: Text of the model's BOS token; "" if it has none.
        eos: Text of the EOS token; "" if it has none.
        begins_with_bos: Whether every prompt must begin with BOS, even if the template does not
            write it.
        arguments: Passed to the template in every call.

    Attributes:
        begin: The required beginning of every prompt: the text of BOS, or "".
        eos: The text of EOS, or "".

    Raises:
        ModelError: There is no template, or it cannot be parsed.
    """

    def __init__(
        self,
        source: str | None,
        *,
        bos: str,
        eos: str,
        begins_with_bos: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        if not source:
            raise ModelError(
                "The model has no chat template; continue a text instead, or use a chat model."
            )
        # Imported only here, because it loads all of llama-cpp-python.
        from specllama.model.template_sandbox import TemplateSandbox

        self._sandbox = TemplateSandbox(source)
        self._tokens = {"bos_token": bos, "eos_token": eos}
        self.eos = eos
        self._source = source
        self.begin = bos if begins_with_bos else ""
        self._arguments = arguments or {}

    @cached_property
    def marks(self) -> AnswerMarks:
        """The texts around the parts of the model's answers."""
        return answer_marks(self._source, self._rendered_or_none)

    @property
    def thinking(self) -> Thinking | None:
        """The texts around the model's thoughts; None: the template has no thoughts."""
        return self.marks.thinking

    @property
    def source(self) -> str:
        """The template's text."""
        return self._source

    def render(
        self, messages: Sequence[Message], arguments: Mapping[str, Any] | None = None
    ) -> str:
        """Return the prompt, with special tokens as text, for `LoadedModel.tokenize_prompt`. The
        text records which of its parts came from the messages and arguments; control tokens written
        there are read as plain text.

        If the template refuses a conversation, it is simplified step by step:

        - Messages without a content get an empty one.
        - All system messages are joined into one at the front.
        - Consecutive messages of the same role are joined; a user's message after the result of a
          tool is joined with it.
        - Calls whose arguments are not JSON lose them.
        - The thought and the content of messages with calls are joined.

        Args:
            messages: The conversation. The model answers the last message. If that is the
                assistant's and not the only one, it is the beginning of the answer, and the model
                continues it; if it is empty, it is left out.
            arguments: Passed to the template, e.g. {"enable_thinking": False}; they override those
                of the constructor.

        Raises:
            ArgumentError: There are no messages, or the template refuses them; or the arguments
                have no names, or a reserved name.
            ModelError: The template takes too long, or makes a text that is too long.
        """
        if isinstance(messages, (str, Mapping)) or not isinstance(messages, Sequence):
            raise ArgumentError(
                'messages must be a list of messages, such as [{"role": "user", "content": "Hi"}].'
            )
        if not messages:
            raise ArgumentError("messages is empty; give at least one message.")
        for i, message in enumerate(messages):
            if not isinstance(message, Mapping) or "role" not in message:
                raise ArgumentError(
                    f'messages[{i}] must be like {{"role": "user", "content": "..."}}.'
                )
            self._check_role(f"messages[{i}]", message["role"])
        passed = {**self._arguments, **tainted(template_arguments(arguments))}
        conversation: Any = [_read(f"messages[{i}]", one) for i, one in enumerate(messages)]
        if _says_nothing(conversation):
            conversation.pop()
        begun = conversation.pop() if _begins_answer(conversation) else None
        conversation = [self._with_thought(one) for one in conversation]
        try:
            return self._begun(self._rendered(conversation, passed), begun)
        except ModelError:
            raise
        except Exception as error:  # a template may raise anything
            simplify = (_with_contents, _system_first, _taking_turns, _whole_calls, _one_text)
            for simpler in simplify:
                before, conversation = conversation, simpler(conversation)
                if conversation != before:
                    with suppress(Exception):
                        return self._begun(self._rendered(conversation, passed), begun)
            why = str(error).rstrip(".")
            raise ArgumentError(f"The chat template refuses these messages: {why:.500}.") from None

    def _check_role(self, name: str, role: Any) -> None:
        """Raise ArgumentError for an unusual role that the template does not mention: the template
        would leave out the message, or write a text unknown to the model."""
        if role in _ROLES or any(f"{mark}{role}{mark}" in self._source for mark in "'\""):
            return
        known = ", ".join(f'"{one}"' for one in _ROLES)
        raise ArgumentError(
            f"{name} has the role {_check.quoted(role)}, which the template does not know; use "
            f"one of {known}."
        )

    def _with_thought(self, message: Message) -> Message:
        """Return a message with its thought in the field that the template reads."""
        thought = message.get("reasoning_content")
        if not thought or self.thinking is None or message["role"] != "assistant":
            return message
        if self.thinking.key != "content":
            return {**message, self.thinking.key: thought}
        tags, said = self.thinking, message.get("content") or ""
        if said.lstrip().startswith(tags.opening):
            return message
        return {**message, "content": f"{tags.opening}{thought}{tags.closing}{said}"}

    def _rendered_or_none(self, messages: Sequence[Message], begins: bool) -> str | None:
        return self._tried([self._with_parts(one) for one in messages], begins)

    def _tried(self, messages: Sequence[Message], begins: bool = True) -> str | None:
        """Render messages without changes; None if the template raises."""
        with suppress(Exception):  # a template may raise anything
            given = {**dict.fromkeys(_UNUSED), **_THINKS, **self._arguments, **self._tokens}
            values = {"messages": list(messages), "add_generation_prompt": begins}
            return str.__str__(self._sandbox.render(given | values))
        return None

    @cached_property
    def _wants_parts(self) -> bool:
        """Whether the template shows only contents that are lists of parts, as some templates of
        vision models do."""
        text, parts = (
            self._tried([{"role": "user", "content": content}]) or ""
            for content in (_PROBE, [{"type": "text", "text": _PROBE}])
        )
        return _PROBE in parts and _PROBE not in text

    def _with_parts(self, message: Message) -> Message:
        """Return a message with its content in the form that the template takes."""
        if not isinstance(message.get("content"), str) or not self._wants_parts:
            return message
        return {**message, "content": [{"type": "text", "text": message["content"]}]}

    def _rendered(self, conversation: Any, passed: Mapping[str, Any]) -> str:
        given = {**dict.fromkeys(_UNUSED), **passed, **self._tokens}
        messages = [self._with_parts(self._tainted(one)) for one in conversation]
        prompt = self._sandbox.render(
            {**given, "messages": messages, "add_generation_prompt": True}
        )
        is_begun = prompt.startswith(self.begin) and not plain_ranges(prompt[: len(self.begin)])
        return prompt if is_begun else joined((self.begin, prompt))

    def _tainted(self, message: Message) -> Message:
        """Return a message with all texts tainted, except its role and the marks of the thought
        with which an answer begins: these may be control tokens."""
        found = {key: one if key == "role" else tainted(one) for key, one in message.items()}
        if message["role"] == "assistant" and isinstance(said := message.get("content"), str):
            found["content"] = self._said(said)
        return found

    def _said(self, said: str) -> str:
        """Return an answer, tainted except for the marks of a thought at its beginning."""
        if self.thinking is None or not said.lstrip().startswith(self.thinking.opening):
            return joined((tainted(said),))
        begin, opening, rest = said.partition(self.thinking.opening)
        return joined((begin, opening, self._thought(rest)))

    def _thought(self, text: str) -> str:
        """Return the rest of a thought and the text after it, tainted except for the mark
        between."""
        assert self.thinking is not None
        thought, closing, after = text.partition(self.thinking.closing)
        return joined((tainted(thought), closing, tainted(after)))

    def opened_thought(self, prompt: str) -> Thinking | None:
        """Return the texts around a thought if the prompt ends with the opening; else None."""
        if self.thinking is not None and prompt.rstrip().endswith(self.thinking.opening):
            return self.thinking
        return None

    def _begun(self, prompt: str, message: Message | None) -> str:
        """Return a prompt with the beginning of the answer, and with the thought before it unless
        the prompt already has one."""
        if message is None:
            return prompt
        said = self._said(str(message["content"]))
        thought = tainted(message.get("reasoning_content") or "")
        tags, opened = self.thinking, self.opened_thought(prompt)
        if tags is None:
            return prompt + said
        if opened:
            if said.lstrip().startswith(tags.opening):
                said = str(message["content"]).lstrip().removeprefix(tags.opening)
                return joined((prompt, self._thought(said.lstrip())))
            return joined((prompt.rstrip(), "\n", thought, f"\n{tags.closing}\n\n", said))
        if thought and not prompt.rstrip().endswith(tags.closing):
            prompt += f"{tags.opening}\n" + thought + f"\n{tags.closing}\n\n"
        return prompt + said


def template_arguments(value: Any) -> Mapping[str, Any]:
    """Return the arguments for a template, {} for None. Raises ArgumentError."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentError(f"template_args must map names to values, not {_check.quoted(value)}.")
    for name in value:
        if not isinstance(name, str):
            raise ArgumentError(f"template_args must have names, not {_check.quoted(name)}.")
        if name in _SETTLED:
            raise ArgumentError(
                f"template_args may not have {name}, which is reserved; leave it out."
            )
    return value


def _says_nothing(conversation: Sequence[Message]) -> bool:
    """Whether the last message is an empty one of the assistant: templates would end its turn."""
    last = conversation[-1]
    said = any(last.get(key) for key in ("content", "tool_calls", "reasoning_content"))
    return len(conversation) > 1 and last["role"] == "assistant" and not said


def _begins_answer(conversation: Sequence[Message]) -> bool:
    """Whether the last message is the beginning of the answer."""
    last = conversation[-1]
    said = last.get("content") and not last.get("tool_calls")
    return bool(len(conversation) > 1 and last["role"] == "assistant" and said)


def _with_contents(conversation: Sequence[Message]) -> Sequence[Message]:
    return [{**one, "content": one.get("content") or ""} for one in conversation]


def _system_first(conversation: Sequence[Message]) -> Sequence[Message]:
    if not any(one["role"] == "system" for one in conversation[1:]):
        return conversation
    texts = [one.get("content") or "" for one in conversation if one["role"] == "system"]
    others = [one for one in conversation if one["role"] != "system"]
    return [{"role": "system", "content": "\n\n".join(texts)}, *others]


def _taking_turns(conversation: Sequence[Message]) -> Sequence[Message]:
    turns: list[Message] = []
    for one in conversation:
        before = turns[-1] if turns else {"role": ""}
        behind_its_own = one["role"] == before["role"] in ("user", "assistant")
        if before.get("tool_calls") or not (
            behind_its_own or (one["role"] == "user" and before["role"] == "tool")
        ):
            turns.append(one)
            continue
        texts = [str(text) for text in (before.get("content"), one.get("content")) if text]
        turns[-1] = {**one, **before, "content": "\n\n".join(texts)}
    return turns


def _one_text(conversation: Sequence[Message]) -> Sequence[Message]:
    """Join the thought and the content of each message with calls: gpt-oss takes one of them."""
    return [
        {**one, "thinking": "\n\n".join((one["thinking"], one["content"])), "content": ""}
        if one.get("tool_calls") and one.get("thinking") and one.get("content")
        else one
        for one in conversation
    ]


def _whole_calls(conversation: Sequence[Message]) -> Sequence[Message]:
    return [
        {**one, "tool_calls": [_whole_call(call) for call in calls]}
        if isinstance(calls := one.get("tool_calls"), list)
        else one
        for one in conversation
    ]


def _whole_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
        return call
    return {**call, "function": {**function, "arguments": {}}}


def _read(name: str, message: Message) -> Message:
    """Return a message as templates take it: if it has parts, their texts, one per line."""
    content = message.get("content")
    if "content" not in message:
        if message["role"] != "assistant":  # whose calls need none
            raise ArgumentError(f'{name} has no "content".')
        return message
    if content is None:
        return message
    name = f"{name} content"
    if not isinstance(content, list):
        _check.text(name, content)
        return message
    if not all(isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in content):
        raise ArgumentError(
            f"{name} must have a text in each of its parts that is not an image or a sound; files "
            "and videos are not supported."
        )
    return {**message, "content": "\n".join(_check.text(name, part["text"]) for part in content)}
