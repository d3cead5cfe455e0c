"""What `specllama bench` runs: prompts that the model continues as it likes, and texts that are
replayed.

Small models cannot follow an instruction, and greedy small models repeat themselves, which flatters
drafters that copy. So beside the *generated* workloads (`WORKLOADS`) there are *replayed* ones
(`REPLAYED`), whose continuation is given: real text, whatever the model.
"""

from __future__ import annotations

from specllama.workloads.generated import COPY, FREE, WORKLOADS
from specllama.workloads.prompts import HELD_OUT, longer_prompts, packaged_prompts, read_prompts
from specllama.workloads.replay import REPLAYED, Replay, load, read_jsonl

__all__ = [
    "COPY",
    "FREE",
    "HELD_OUT",
    "REPLAYED",
    "WORKLOADS",
    "Replay",
    "load",
    "longer_prompts",
    "packaged_prompts",
    "read_jsonl",
    "read_prompts",
]
