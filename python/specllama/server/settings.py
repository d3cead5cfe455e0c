"""The settings of the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from specllama import GenerateOptions

_BODY = 1 << 20
_BODY_WITH_IMAGES = 32 << 20


@dataclass(frozen=True)
class Settings:
    """The settings of the server.

    Attributes:
        name: The model's name in answers.
        host: Address or name at which the server listens.
        api_keys: Bearer tokens of which requests must carry one; empty: none is needed.
        cors_origins: Origins of web pages that may use the server, besides its own page.
        max_body: Most bytes of a request; None: 1 MiB, or 32 MiB where the model sees images.
        allow_image_urls: Whether images are downloaded that requests name by their address.
        max_prompt: Most tokens of a prompt; None: as many as the context holds.
        timeout: Most seconds from a request's arrival to the end of its generation.
        idle: Seconds after which the server gives up a generation that waits for a draft, or a
            connection for such drafts over which nothing is generated.
        slot_save_path: Folder of the files in which slots are saved; None: they are not.
        log_texts: Whether prompts and answers are logged.
        sampling: Defaults of sampling options and of max_tokens, for completions and chats whose
            requests leave them open. max_tokens is also the most that a request gets.
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

    def most_bytes(self, *, sees: bool) -> int:
        """Return the most bytes of a request to a model that sees images, or does not."""
        return self.max_body or (_BODY_WITH_IMAGES if sees else _BODY)
