"""A conversation with tools: its prompt, what may be said next, and how that is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from specllama import Chunk, GenerateOptions
from specllama.model.chat_template import Message
from specllama.model.loaded_model import LoadedModel
from specllama.server.error import ApiError
from specllama.server.fields import Fields
from specllama.server.messages import read_messages
from specllama.server.rewritten import rewritten
from specllama.server.tools.choice import ToolChoice
from specllama.server.tools.grammar import calls_grammar
from specllama.server.tools.reader import CallReader, Content, Part
from specllama.server.tools.recognise import call_format

_template_format = lru_cache(maxsize=8)(call_format)


class Conversation:
    """Messages that a model goes on from, and the tools that it may call.

    Args:
        model: The model. Raises ApiError if it has no chat template.
        messages: As `read_messages` gives them.
        choice: The tools.
        template_args: What else the model's chat template takes.
    """

    def __init__(
        self,
        model: LoadedModel,
        messages: Sequence[Message],
        choice: ToolChoice,
        template_args: Mapping[str, Any],
    ) -> None:
        if not model.has_chat_template:
            raise ApiError(400, "The model has no chat template; use /v1/completions.")
        self._model = model
        self._messages = messages
        self._choice = choice
        self._template_args = template_args
        self._format = _template_format(model.chat_template)
        self._marks: dict[int | None, str] = {}
        if choice.tools:
            for mark in self._format.marks:
                tokens = model.tokenize(mark, add_special=False)
                if len(tokens) == 1:
                    self._marks[tokens[0]] = mark

    @classmethod
    def read(cls, model: LoadedModel, fields: Fields) -> Conversation:
        """Read the conversation of a chat completion. Raises ApiError."""
        template_args = dict(fields.object("chat_template_kwargs").given)
        return cls(model, read_messages(fields), ToolChoice.read(fields), template_args)

    def prompt(self) -> list[int]:
        """Return the token ids of the prompt. Raises as `LoadedModel.render_chat`."""
        return self._model.render_chat(*self._for_template())

    def text(self) -> str:
        """Return the prompt as text. Raises as `ChatTemplate.render`."""
        return self._model.chat_template.render(*self._for_template())

    def _for_template(self) -> tuple[Sequence[Message], dict[str, Any]]:
        messages, arguments = self._messages, dict(self._template_args)
        if self._choice.offered or any(
            one.get("tool_calls") or one.get("role") == "tool" for one in messages
        ):
            messages = self._format.conversation(messages, self._choice.offered)
            arguments |= self._format.template_args(self._choice.offered)
        return messages, arguments

    def constrain(self, options: GenerateOptions) -> None:
        """Hold calls to their schemas: from the start where there must be one, or where the answer
        has a schema as well; else from where one begins. Raises ApiError."""
        if not self._choice.tools:
            return
        if "grammar" in options:
            raise ApiError(400, "grammar and tools exclude each other.", param="grammar")
        answer = options.pop("json_schema", None)
        if self._choice.must:
            answer = None
        assert answer is None or isinstance(answer, Mapping)
        options["grammar"] = calls_grammar(self._choice, self._format, answer)
        if not self._choice.must and answer is None:
            options["grammar_triggers"] = self._format.openings(self._choice.tools)

    def refer(self, options: GenerateOptions) -> None:
        """Have an answer that is held to a form copy what it has to write otherwise."""
        if options.keys() & {"grammar", "json_schema"} and (text := rewritten(self._messages)):
            given = options.get("reference")
            options["reference"] = f"{given}\n{text}" if isinstance(given, str) else text

    def reader(self) -> AnswerReader:
        """Return what takes one answer apart."""
        calls = CallReader(self._format, self._choice.tools) if self._choice.tools else None
        return AnswerReader(calls, self._marks)


class AnswerReader:
    """Takes one answer apart into content and calls.

    Args:
        calls: What looks for calls; None: there are none.
        marks: Texts of tokens that chunks do not show, by token.
    """

    def __init__(self, calls: CallReader | None, marks: Mapping[int | None, str]) -> None:
        self._calls = calls
        self._marks = marks

    @property
    def called(self) -> bool:
        """Whether there was a call."""
        return self._calls is not None and self._calls.n_calls > 0

    def read(self, chunks: Iterable[Chunk]) -> list[Part]:
        """Return all parts of an answer that is there as a whole."""
        return [part for chunk in chunks for part in self.push(chunk)] + self.finish()

    def push(self, chunk: Chunk) -> list[Part]:
        """Take the next chunk; return what is certain."""
        if self._calls is None:
            return [Content(chunk.text)]
        return self._calls.push(chunk.text or self._marks.get(chunk.token, ""))

    def finish(self) -> list[Part]:
        """Return what was held back."""
        return [] if self._calls is None else self._calls.finish()
