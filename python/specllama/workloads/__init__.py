"""The workloads of `specllama bench`: conversations that the model answers, prompts that it
continues freely, and texts that are replayed.

The *answered* workloads (`ANSWERED`) are typical requests to a chat model. Small models cannot
follow instructions, and with greedy decoding they repeat themselves, which favours drafters that
copy. So in addition to the *generated* workloads (`WORKLOADS`) there are *replayed* ones
(`REPLAYED`), whose continuation is given: real text for any model.
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
