"""The choice of the tools that a model may or must call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specllama.dialogue.tools.tool import Tool


@dataclass(frozen=True)
class ToolChoice:
    """The tools that a model may call, and whether it must call one.

    Attributes:
        offered: Tools that the prompt describes; if empty, the model only writes text.
        tools: The offered tools that may be called.
        must: Whether the model must call a tool.
        parallel: Whether it may call several in one answer.
    """

    offered: Sequence[Tool]
    tools: Sequence[Tool]
    must: bool
    parallel: bool
