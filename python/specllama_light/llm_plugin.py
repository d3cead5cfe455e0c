"""Plugin of the command-line tool `llm` (llm.datasette.io): the models on this machine, with
speculative decoding, as `specllama/NAME`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llm
from llm.parts import TextPart
from pydantic import Field

from specllama_light.default_model import installed_model
from specllama_light.local_models import caches, files, is_beside_models

if TYPE_CHECKING:
    from specllama import SpecSession


@llm.hookimpl  # type: ignore[untyped-decorator,unused-ignore]
def register_models(register: Callable[[llm.Model], None]) -> None:
    """Add the files that `specllama models` finds, and SmolLM2 if it is installed."""
    for name, path in _named_files().items():
        register(LocalModel(name, path))


class LocalModel(llm.Model):
    """A GGUF file. The first prompt opens its session. It stays open until the process ends or a
    prompt gives another drafter or number of threads.

    A model with a chat template answers the conversation. Other models continue the text of all its
    messages.
    """

    can_stream = True
    supports_schema = True

    class Options(llm.Options):
        """The options of `llm -o NAME VALUE`."""

        draft: str = Field(
            "auto", description="Drafter: auto, ngram, none, or the path of a smaller GGUF"
        )
        temperature: float = Field(0.0, description="0 is greedy: always the likeliest token")
        seed: int | None = Field(None, description="Same seed, same answer")
        max_tokens: int | None = Field(
            None, description="Maximum tokens of an answer (no limit; 256 without a chat template)"
        )
        threads: int | None = Field(None, description="Threads (the performance cores)")

    def __init__(self, name: str, path: Path) -> None:
        self.model_id = f"specllama/{name}"
        self._path = path
        self._session: SpecSession | None = None
        self._opened_with: dict[str, Any] = {}

    def execute(
        self,
        prompt: llm.Prompt,
        stream: bool,
        response: llm.Response,
        conversation: llm.Conversation | None,
    ) -> Iterator[str]:
        """Yield the answer as it comes; without streaming, `llm` joins it."""
        options: Any = prompt.options  # `Options` above
        draft = None if options.draft == "none" else options.draft
        session = self._opened({"draft": draft, "n_threads": options.threads})
        messages = [{"role": one.role, "content": _text(one)} for one in prompt.messages]
        request: dict[str, Any] = {"temperature": options.temperature, "seed": options.seed}
        if prompt.schema:
            request["json_schema"] = prompt.schema
        if session.has_chat_template:
            tokens = session.render_chat(messages)
            running = session.stream(tokens, max_tokens=options.max_tokens, **request)
        else:
            text = "".join(message["content"] for message in messages)
            most = 256 if options.max_tokens is None else options.max_tokens
            running = session.stream(text, max_tokens=most, **request)
        with running:
            for chunk in running:
                yield chunk.text
        stats = running.stats
        response.set_usage(
            input=stats.prompt_tokens,
            output=stats.generated_tokens,
            details={"drafted": stats.drafted, "accepted": stats.accepted},
        )

    def _opened(self, options: dict[str, Any]) -> SpecSession:
        # Imported here, because `llm` loads all plugins at each start.
        from specllama import SpecSession

        if self._session is None or self._opened_with != options:
            if self._session is not None:
                self._session.close()
                self._session = None
            self._session = SpecSession(self._path, **options)
            self._opened_with = options
        return self._session


def _named_files() -> dict[str, Path]:
    """Return the files by name: without folder and suffix, or the whole path if that is taken."""
    named: dict[str, Path] = {}
    default = installed_model()
    for path in [*([default] if default else []), *files(caches())]:
        if not is_beside_models(path.name):
            named[str(path) if path.stem in named else path.stem] = path
    return named


def _text(message: Any) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))
