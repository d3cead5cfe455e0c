"""The methods of `SpecSession` for conversations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from typing_extensions import Unpack

from specllama.dialogue.answering import ToolRequest
from specllama.model.chat_template import Message
from specllama.requests.asynchronous import AsyncRequests
from specllama.requests.handle import Handle
from specllama.requests.options import GenerateOptions
from specllama.requests.stream import Generation


class Chats(AsyncRequests):
    """A model that answers conversations, also with tools."""

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] = "auto",
        template_args: Mapping[str, Any] | None = None,
        n: int = 1,
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Answer the last message of a conversation, with the model's own chat template.

        Args:
            messages: The whole conversation, in every call: {"role": "user", "content": "..."}.
                The part that is already in the KV memory is not decoded again. A content may be a
                list of parts: {"type": "text", "text": "..."}, and for models that see or hear
                {"type": "image", "image": a path, bytes, a Pillow image or an array},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,..."}},
                {"type": "audio", "audio": path or bytes of a WAV, MP3 or FLAC file} or OpenAI's
                "input_audio".
            tools: Functions that the model may call, as in the OpenAI API: {"type": "function",
                "function": {"name": "...", "description": "...", "parameters": a JSON schema}}.
                Calls must follow the schemas. Append the result's `message` to the conversation,
                and after it, for each of its `tool_calls`, {"role": "tool", "tool_call_id": its
                id, "content": the result as text}. None: no tools.
            tool_choice: "auto": the model decides; "none": no call; "required": at least one call;
                or the name of the tool to call.
            template_args: Arguments for the template, e.g. {"enable_thinking": False}.
            n: As for `generate`.
            **options: As for `generate`.

        Raises:
            ModelError: The model has no chat template.
            ArgumentError: The template refuses the messages; or as for `generate`.
        """
        given = GenerateOptions(**options)
        if tools is None:
            return self._continued(self.render_chat(messages, template_args), n, given)
        handle = ToolRequest.of(self, messages, tools, tool_choice, template_args, given, n).queued(
            self
        )
        with _cancelled_by_errors(handle):
            return Generation.of_choices([one.result() for one in handle.choices])

    async def achat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] = "auto",
        template_args: Mapping[str, Any] | None = None,
        n: int = 1,
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Answer the last message of a conversation; see `agenerate`. Arguments and errors are
        those of `chat`."""
        given = GenerateOptions(**options)
        if tools is None:
            return await self._acontinued(
                lambda: (self.render_chat(messages, template_args), given), n
            )
        handle = await self._aside(
            lambda: ToolRequest.of(
                self, messages, tools, tool_choice, template_args, given, n
            ).queued(self)
        )
        with _cancelled_by_errors(handle):
            return Generation.of_choices([await one for one in handle.choices])

    def submit_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] = "auto",
        template_args: Mapping[str, Any] | None = None,
        n: int = 1,
        **options: Unpack[GenerateOptions],
    ) -> Handle:
        """Queue a request to answer the last message of a conversation. Arguments are those of
        `chat`; for the rest see `submit`. With tools, chunks have the text as the model writes it,
        calls included; the result's `message` has the calls separately."""
        given = GenerateOptions(**options)
        if tools is None:
            return self.submit(self.render_chat(messages, template_args), n=n, **given)
        return ToolRequest.of(self, messages, tools, tool_choice, template_args, given, n).queued(
            self
        )

    def _continued(
        self, prompt: str | Iterable[int], n: int, options: GenerateOptions
    ) -> Generation:
        """Continue one prompt and return the whole result."""
        raise NotImplementedError


@contextmanager
def _cancelled_by_errors(handle: Handle) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for one in handle.choices:
            one.cancel()
        raise
