"""Conversations with tools, for `SpecSession.chat`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specllama import _check
from specllama._core import Chunk
from specllama.dialogue.answer_parts import Part, calls, content, thoughts
from specllama.dialogue.answer_reader import AnswerReader
from specllama.dialogue.conversation import Conversation
from specllama.dialogue.tools.choice import ToolChoice
from specllama.dialogue.tools.tool import NAME, Tool, arguments_grammar, fitting
from specllama.errors import ArgumentError
from specllama.model.chat_template import Message, template_arguments
from specllama.requests.background import (
    MOST_CHOICES,
    BackgroundRequests,
    prepared,
    submitted,
)
from specllama.requests.grammar import read_schema
from specllama.requests.handle import Handle
from specllama.requests.options import GenerateOptions
from specllama.requests.tool_call import call_arguments

_FORM = '{"type": "function", "function": {"name": "...", "parameters": {...}}}'


@dataclass(frozen=True)
class ToolRequest:
    """A conversation in which the model may call tools, as a request.

    Attributes:
        prompt: The prompt.
        options: The given options, with the grammar for calls.
        readers: A reader for each choice.
    """

    prompt: list[int]
    options: GenerateOptions
    readers: list[ToolMessageReader]

    @classmethod
    def of(
        cls,
        session: BackgroundRequests,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        tool_choice: str | Mapping[str, Any],
        template_args: Mapping[str, Any] | None,
        options: GenerateOptions,
        n: int = 1,
    ) -> ToolRequest:
        """Prepare the request. Arguments and errors are those of `SpecSession.chat`."""
        choice = _chosen(_tools(tools), tool_choice)
        _ = session.chat_template  # raises now if there is none
        reader = session.media_reader()
        conversation = Conversation(
            session,
            [_readable(one) for one in reader.messages(messages)],
            choice,
            template_arguments(template_args),
            media=reader.placeholders,
        )
        if options.get("json_schema") is not None:
            options["json_schema"] = read_schema(options["json_schema"])
        options = conversation.constrained(options)
        prompt = conversation.prompt()
        for warning in conversation.warnings:
            warnings.warn(warning, stacklevel=4)
        n = _check.integer("n", n, low=1, high=MOST_CHOICES)
        readers = [ToolMessageReader(conversation.reader(options)) for _ in range(n)]
        return cls(prompt, options, readers)

    def queued(self, session: BackgroundRequests) -> Handle:
        """Queue the request; see `SpecSession.submit`."""
        jobs = prepared(session, [self.prompt], len(self.readers), self.options)
        for job, reader in zip(jobs, self.readers, strict=True):
            job.request = replace(job.request, reader=reader)
        return Handle.of_choices(submitted(session, jobs))


class ToolMessageReader:
    """Parses an answer that may have calls; see `MessageReader`."""

    def __init__(self, reader: AnswerReader) -> None:
        self._reader = reader
        self._parts: list[Part] = []
        self._ended = False

    def push(self, chunks: Sequence[Chunk]) -> None:
        """Read the next chunks."""
        for chunk in chunks:
            self._parts += self._reader.push(chunk)

    def finish(self) -> None:
        """Read the text that was held back. Calling it twice is allowed."""
        if not self._ended:
            self._ended = True
            self._parts += self._reader.finish()

    @property
    def message(self) -> dict[str, Any]:
        """The answer so far."""
        return _message(list(self._parts))


def _message(parts: Sequence[Part]) -> dict[str, Any]:
    """Return an answer as a message of a conversation."""
    message: dict[str, Any] = {"role": "assistant", "content": content(parts)}
    if thought := thoughts(parts):
        message["reasoning_content"] = thought
    if called := calls(parts):
        message["tool_calls"] = called
    return message


def _tools(given: Sequence[Mapping[str, Any]]) -> list[Tool]:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Sequence):
        raise ArgumentError(f"tools must be a list of tools like {_FORM}.")
    tools: dict[str, Tool] = {}
    for i, one in enumerate(given):
        tool = _tool(f"tools[{i}]", one)
        if tool.name in tools:
            raise ArgumentError(f"tools[{i}] has the name of another tool, {tool.name!r}.")
        tools[tool.name] = tool
    return fitting(list(tools.values()))


def _tool(field: str, given: Any) -> Tool:
    function = given.get("function") if isinstance(given, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ArgumentError(f"{field} must be like {_FORM}, not {_check.quoted(given)}.")
    if not NAME.fullmatch(function["name"]):
        raise ArgumentError(
            f"{field} must have a name of 1 to 128 letters, digits and _ . : / -, not "
            f"{_check.quoted(function['name'])}."
        )
    schema = function.get("parameters", {"properties": {}})
    if not isinstance(schema, Mapping):
        raise ArgumentError(
            f"{field} parameters must be a JSON schema, an object, not {_check.quoted(schema)}."
        )
    strict = bool(function.get("strict"))
    arguments = arguments_grammar(schema, f"{field} parameters", strict=strict)
    said = {**function, "description": function.get("description", "")}
    return Tool(function["name"], arguments, {"type": "function", "function": said})


def _chosen(tools: Sequence[Tool], choice: str | Mapping[str, Any]) -> ToolChoice:
    if choice == "none":
        return ToolChoice([], [], False, True)
    if choice == "auto":
        return ToolChoice(tools, tools, False, True)
    if choice == "required" and tools:
        return ToolChoice(tools, tools, True, True)
    function = choice.get("function") if isinstance(choice, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else choice
    named = [tool for tool in tools if tool.name == name]
    if not named:
        known = ", ".join(f'"{one}"' for one in ("auto", "none", "required"))
        raise ArgumentError(
            f"tool_choice must be {known} or the name of one of the tools, not "
            f"{_check.quoted(choice)}."
        )
    return ToolChoice(tools, named, True, False)


def _readable(message: Message) -> Message:
    """Return a message with the arguments of calls as objects, and the texts of its parts joined:
    the form that `CallFormat` takes."""
    if not isinstance(message, Mapping):
        return message  # the template's checks refuse it
    found = dict(message)
    if isinstance(parts := found.get("content"), list):
        texts = [part.get("text") if isinstance(part, Mapping) else None for part in parts]
        if all(isinstance(text, str) for text in texts):
            found["content"] = "\n".join(map(str, texts))
    if called := found.get("tool_calls"):
        found["tool_calls"] = [_readable_call(call) for call in called]
    return found


def _readable_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
        return call
    arguments = call_arguments(function["arguments"] or "{}")
    return {**call, "function": {**function, "arguments": arguments}}
