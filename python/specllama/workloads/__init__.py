"""The workloads of `specllama bench`: conversations that the model answers, prompts that it
continues freely, and texts that are replayed.

The *answered* workloads (`ANSWERED`) are what people ask of a model that can chat. Small models
cannot follow an instruction, and they repeat themselves when they decode greedily, which flatters
drafters that copy. So besides the *generated* workloads (`WORKLOADS`) there are *replayed* ones
(`REPLAYED`), whose continuation is given: real text, whatever the model.
"""

from __future__ import annotations

from specllama.workloads.answered import ANSWERED, Dialogue, Half, load_answered, read_dialogues
from specllama.workloads.prompts import (
    COPY,
    FREE,
    HELD_OUT,
    WORKLOADS,
    longer_prompts,
    packaged_prompts,
    read_prompts,
)
from specllama.workloads.replay import REPLAYED, Replay, load, read_jsonl

__all__ = [
    "ANSWERED",
    "COPY",
    "FREE",
    "HELD_OUT",
    "REPLAYED",
    "WORKLOADS",
    "Dialogue",
    "Half",
    "Replay",
    "load",
    "load_answered",
    "longer_prompts",
    "packaged_prompts",
    "read_dialogues",
    "read_jsonl",
    "read_prompts",
]
