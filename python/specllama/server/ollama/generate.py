"""/api/generate: prompts, with or without the chat template."""

from __future__ import annotations

from typing import Any

from specllama import Generation, _check
from specllama.dialogue.conversation import Conversation
from specllama.dialogue.tools.choice import ToolChoice
from specllama.model.media_prompt import MediaPrompt
from specllama.requests.background import BackgroundRequests
from specllama.server.body.fields import Fields
from specllama.server.error import ApiError
from specllama.server.llama_server.infill import infill_prompt
from specllama.server.media.request_media import RequestMedia
from specllama.server.ollama.endpoint import OllamaEndpoint
from specllama.server.ollama.fields import template_args, translated
from specllama.server.ollama.input import with_images
from specllama.server.settings import Settings

_NO_TOOLS = ToolChoice((), (), must=False, parallel=True)


class OllamaGenerate(OllamaEndpoint):
    """A request to /api/generate. If the model has a chat template, the prompt becomes a user's
    message. With `raw`, or without a template, the prompt is continued as it is. With `suffix`, the
    gap before the suffix is filled."""

    prompt_field = "prompt"

    def __init__(self, model: BackgroundRequests, fields: Fields, settings: Settings) -> None:
        fields.refuse_unsupported("template")
        given = translated(fields)
        self._raw = given.flag("raw")
        for one, others in (
            ("raw", ("system", "context", "suffix", "images")),
            ("images", ("context", "suffix")),
        ):
            for name in others:
                if given.any(one) and given.any(name):
                    raise ApiError(400, f"{one} and {name} exclude each other.", param=name)
        if given.any("images") and not model.has_chat_template:
            raise ApiError(400, "images require a model with a chat template.", param="images")
        self._prompt = _check.text("prompt", given.text("prompt"))
        self._suffix = _check.text("suffix", given.text("suffix"))
        super().__init__(model, given, settings, self._conversation_of(model, given))

    def _conversation_of(self, model: BackgroundRequests, fields: Fields) -> Conversation | None:
        if self._raw or self._suffix or not self._prompt or not model.has_chat_template:
            return None
        system = _check.text("system", fields.text("system"))
        messages = [{"role": "system", "content": system}] if system else []
        media = RequestMedia(model, fields)
        messages.append({"role": "user", "content": with_images(self._prompt, fields, media)})
        return Conversation(model, messages, _NO_TOOLS, template_args(fields), media=media.taken())

    def _read_prompts(self, fields: Fields) -> list[list[int]]:
        before = self._context(fields)
        if not self._prompt and not self._suffix:
            return []
        if self._suffix:
            return [infill_prompt(self._model, self._prompt, self._suffix)]
        if self._conversation is None:
            tokens = self._model.tokenize(self._prompt)
        else:
            tokens = self._conversation.prompt()
        if not before:
            return [tokens]
        begin = self._model.tokenize("")
        if begin and tokens[: len(begin)] == begin:
            tokens = tokens[len(begin) :]
        return [before + tokens]

    def _context(self, fields: Fields) -> list[int]:
        """Return `context`, the tokens of the conversation so far, from an earlier answer."""
        given = fields.any("context") or []
        if not isinstance(given, list) or any(type(one) is not int for one in given):
            fields.refuse("context", "a list of token ids")
        return given

    def _said(self, text: str, thought: str, made: list[dict[str, Any]]) -> dict[str, Any]:
        return {"response": text, **({"thinking": thought} if thought else {})}

    def _more(self, generation: Generation) -> dict[str, Any]:
        # `context` has only tokens, so it cannot contain images.
        if self._raw or isinstance(self.prompts[0], MediaPrompt):
            return {}
        return {"context": [*self.prompts[0], *generation.tokens]}
