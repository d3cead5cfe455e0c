"""A conversation with tools: its prompt, and the constraints and the reader of the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from specllama import _core
from specllama.dialogue.answer_reader import AnswerReader, WrapperReader
from specllama.dialogue.json_rewrites import json_rewrites
from specllama.dialogue.thoughts import ThoughtReader
from specllama.dialogue.tools.choice import ToolChoice
from specllama.dialogue.tools.grammar import AnswerGrammar
from specllama.dialogue.tools.parameters_grammar import left_open, too_many
from specllama.dialogue.tools.reader import CallReader
from specllama.dialogue.tools.recognise import call_format
from specllama.errors import ArgumentError, ModelError
from specllama.media.placeholders import Placeholders
from specllama.model.chat_template import Message
from specllama.model.loaded_model import LoadedModel
from specllama.model.marks import TAG
from specllama.model.thinking import AnswerMarks
from specllama.requests.options import GenerateOptions
from specllama.requests.schema.schema_grammar import SchemaGrammar

_CONSTRAINTS = frozenset({"grammar", "json_schema", "regex"})
"""Options that constrain an answer."""

template_format = lru_cache(maxsize=8)(call_format)
"""Returns the format of calls of a chat template. Finding it out takes a while."""


def described_format(model: LoadedModel) -> dict[str, Any]:
    """Describe how the model writes calls and thoughts; {} if it has no chat template."""
    if not model.has_chat_template:
        return {}
    calls, thinking = template_format(model.chat_template), model.chat_template.thinking
    tags = None if thinking is None else {"start": thinking.opening, "end": thinking.closing}
    return {
        "tool_calls": {"from": calls.source, "example": calls.example},
        "reasoning": tags,
    }


class Conversation:
    """Messages for a model to answer, and the tools that it may call.

    Args:
        model: The model.
        messages: Messages in the form that `read_messages` returns.
        choice: The tools.
        template_args: Further arguments of the model's chat template.
        separates_thoughts: Whether thoughts are separated from content.
        media: The images and sounds whose placeholders the messages contain; None: no media.

    Raises:
        ModelError: The model has no chat template.
    """

    def __init__(
        self,
        model: LoadedModel,
        messages: Sequence[Message],
        choice: ToolChoice,
        template_args: Mapping[str, Any],
        *,
        separates_thoughts: bool = True,
        media: Placeholders[_core.Media] | None = None,
    ) -> None:
        if not model.has_chat_template:
            raise ModelError("The model has no chat template; use /v1/completions.")
        self._model = model
        self._messages = messages
        self._choice = choice
        self._template_args = template_args
        self._format = template_format(model.chat_template)
        found = model.chat_template.marks
        self._marks = found if separates_thoughts else AnswerMarks(None)
        self._media = media or Placeholders()

    def prompt(self) -> list[int]:
        """Return the token ids of the prompt. Raises the errors of `ChatTemplate.render` and
        `LoadedModel.tokenize_prompt`."""
        return self._model.tokenize_prompt(self.text, self._media)

    @property
    def shown(self) -> str:
        """The prompt as text, with llama.cpp's marker for each image and sound. Raises the errors
        of `ChatTemplate.render`."""
        return self._media.shown(self.text)

    @cached_property
    def text(self) -> str:
        """The prompt as text, with the placeholders of images and sounds. Raises the errors of
        `ChatTemplate.render`."""
        return self._model.chat_template.render(*self._for_template())

    def _for_template(self) -> tuple[Sequence[Message], dict[str, Any]]:
        messages, arguments = self._messages, dict(self._template_args)
        if self._choice.offered or any(
            one.get("tool_calls") or one.get("role") == "tool" for one in messages
        ):
            messages = self._format.conversation(messages, self._choice.offered)
            arguments |= self._format.template_args(self._choice.offered)
        return messages, arguments

    def constrained(self, options: GenerateOptions) -> GenerateOptions:
        """Return a request's options with the constraints of this conversation.

        A grammar makes calls follow their schemas. It applies from the start of the answer if a
        call is required or the answer has a schema; else from the beginning of a call. If the
        prompt has begun a thought, the answer starts at the end of that thought. For an answer with
        a grammar or schema, `reference` also gets texts of the conversation in the form that the
        answer must write. Raises ArgumentError.
        """
        found = self._with_grammar(options)
        if found.keys() & _CONSTRAINTS and (
            text := self._media.left_out(json_rewrites(self._messages))
        ):
            given = found.get("reference")
            found["reference"] = f"{given}\n{text}" if isinstance(given, str) else text
        return found

    def _with_grammar(self, options: GenerateOptions) -> GenerateOptions:
        found = options.copy()
        for name in ("grammar", "regex"):
            if name in found:  # applies from the start, even in a thought
                if self._choice.tools:
                    raise ArgumentError(f"{name} and tools exclude each other.")
                return found
        answer = found.get("json_schema")
        assert answer is None or isinstance(answer, SchemaGrammar)
        if self._choice.tools:
            found.pop("json_schema", None)
            answer = None if self._choice.must else answer
            found["grammar"] = self._grammar.calls(self._choice, self._format, answer)
            if not self._choice.must and answer is None:
                found["grammar_triggers"] = self._format.openings(self._choice.tools)
                return found
        elif answer is not None and self._closing:
            del found["json_schema"]
            found["grammar"] = self._grammar.answer(answer)
        if "grammar" in found and self._closing:
            found["grammar_triggers"] = [self._closing]
        return found

    def reader(self, options: GenerateOptions) -> AnswerReader:
        """Return a reader that splits one answer into parts.

        Args:
            options: The result of `constrained`.
        """
        triggers = options.get("grammar_triggers") or ()
        # A grammar without triggers leaves no room for the end of a thought.
        opened = bool(self._closing) and (not options.keys() & _CONSTRAINTS or bool(triggers))
        tools, must = self._choice.tools, self._choice.must
        calls = CallReader(self._format, tools, only=must) if tools else None
        thoughts = None
        if self._marks.thinking is not None:
            thoughts = ThoughtReader(self._marks.thinking, opened=opened)
        return AnswerReader(
            thoughts,
            calls,
            self._tokens,
            wrappers=WrapperReader(self._marks.wrappers) if self._marks.wrappers else None,
            calls_in_thoughts=self._closing not in triggers,
        )

    @cached_property
    def _closing(self) -> str:
        """The closing of the thought that the prompt has begun; "" if it has not."""
        opened = self._model.chat_template.opened_thought(self.text)
        return "" if opened is None else opened.closing

    @property
    def warnings(self) -> list[str]:
        """The restrictions of the tools' schemas that are not enforced, or in another way."""
        marked = self._format.shapes[0].parameters is not None
        loose = too_many(self._choice.tools)
        return [
            f"{tool.name}: {one}."
            for tool in self._choice.tools
            for one in (*tool.arguments.warnings, *(left_open(tool, loose) if marked else ()))
        ]

    @cached_property
    def _grammar(self) -> AnswerGrammar:
        control = {
            mark: token
            for token, mark in self._tokens.items()
            if token is not None and not self._model.token_bytes(token)
        }
        return AnswerGrammar(self._closing, control, self._marks.header)

    @cached_property
    def _tokens(self) -> dict[int | None, str]:
        """The tags of calls and thoughts that are single tokens, by token. They may be special
        tokens, whose text is not in chunks."""
        marks = list(self._format.marks) if self._choice.tools else []
        if self._marks.thinking is not None:
            marks += [self._marks.thinking.opening, self._marks.thinking.closing]
        marks += self._marks.wrappers
        texts = dict.fromkeys(text for mark in marks for text in (mark, *TAG.findall(mark)))
        tokens = [(self._model.tokenize(text, add_special=False), text) for text in texts]
        return {one[0]: text for one, text in tokens if len(one) == 1 and len(text) > 1}
