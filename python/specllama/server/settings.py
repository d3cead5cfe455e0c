"""What the server allows."""

from __future__ import annotations

from dataclasses import dataclass, field

from specllama import GenerateOptions

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
"""Names of this machine that no other one reaches."""


@dataclass(frozen=True)
class Settings:
    """What the server allows.

    Attributes:
        name: What the model is called in answers.
        host: Address it listens at.
        api_key: What requests must carry as a bearer token; None: nothing.
        cors_origins: Origins of web pages that may use it, besides its own page.
        max_body: Most bytes of a request.
        max_prompt: Most tokens of a prompt; None: as many as the context holds.
        timeout: Most seconds from a request's arrival to the end of its generation.
        idle: Seconds after which a generation that waits for a draft is given up, and a connection
            for such drafts over which nothing is generated.
        sampling: How tokens are chosen, and how many at most, for requests that do not say; of
            completions and chats.
    """

    name: str
    host: str = "127.0.0.1"
    api_key: str | None = None
    cors_origins: tuple[str, ...] = ()
    max_body: int = 1 << 20
    max_prompt: int | None = None
    timeout: float = 600.0
    idle: float = 60.0
    sampling: GenerateOptions = field(default_factory=lambda: GenerateOptions(temperature=1.0))
