"""The settings of the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from specllama import GenerateOptions

_BODY = 1 << 20
_BODY_WITH_MEDIA = 32 << 20


@dataclass(frozen=True)
class Settings:
    """The settings of the server.

    Attributes:
        name: The model's name in answers.
        host: Address or name at which the server listens.
        api_keys: Keys of which every request must carry one; empty: no key is needed.
        cors_origins: Origins of web pages that may use the server, besides its own page.
        max_body: Maximum bytes of a request; None: 1 MiB, or 32 MiB for a vision or audio model.
        allow_image_urls: Whether the server downloads images that requests name by URL.
        max_prompt: Maximum number of prompt tokens; None: as many as the context holds.
        timeout: Maximum seconds from a request's arrival to the end of its generation.
        idle: Seconds after which the server ends a remote generation that waits for a draft.
        slot_save_path: Folder for saved slots; None: slots cannot be saved.
        log_texts: Whether prompts and answers are logged.
        sampling: Defaults of sampling options and of max_tokens, for completions and chats that
            leave them open. max_tokens is also the maximum for every request.
    """

    name: str
    host: str = "127.0.0.1"
    api_keys: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    max_body: int | None = None
    allow_image_urls: bool = False
    max_prompt: int | None = None
    timeout: float = 600.0
    idle: float = 60.0
    slot_save_path: Path | None = None
    log_texts: bool = False
    sampling: GenerateOptions = field(default_factory=lambda: GenerateOptions(temperature=1.0))

    def most_bytes(self, *, media: bool) -> int:
        """Return the maximum bytes of a request. media: Whether the model accepts images or
        sounds."""
        return self.max_body or (_BODY_WITH_MEDIA if media else _BODY)
