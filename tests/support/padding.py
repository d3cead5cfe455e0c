"""A process that answers prompts with a given cost of a width change. It prints how far the tokens
are from plain decoding's, and the number of tokens of each decode.

    python padding.py LIBRARY MODEL CHANGE OPTIONS

LIBRARY: see recording_llama.c. CHANGE: the cost, in plain decodes.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

PROMPTS = [[1, *range(5 + i, 45)] * 4 for i in range(4)]
ENDLESS: dict[str, Any] = {"max_tokens": 150, "logit_bias": {2: -100.0}}


def main(library: str, model: str, change: str, chosen: str) -> None:
    recording = ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    from drafters import MostlyRight
    from near_ties import tie
    from session_options import learn_costs
    from specllama import SpecSession

    n_decodes = ctypes.c_int.in_dll(recording, "n_decodes")
    widths = (ctypes.c_int * (1 << 16)).in_dll(recording, "widths")
    drafter = MostlyRight()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["SPECLLAMA_CACHE"] = cache
        options = {"n_threads": 1, "n_gpu_layers": 0} | json.loads(chosen)
        prompts = PROMPTS[: options.get("n_seq", 1)]
        with SpecSession(model, None, **options) as session:
            plain = [session.generate(prompt, logprobs=20, **ENDLESS) for prompt in prompts]
        drafter.texts = [[*prompt, *one.tokens] for prompt, one in zip(prompts, plain, strict=True)]
        learn_costs(SpecSession(model, drafter, **options))
        (file,) = Path(cache).glob("*.curve")
        # Keep only v(1) of the measured costs; no other point can contradict it.
        key, _, one, *_ = file.read_text().splitlines()
        file.write_text(f"{key}\n0 0 {float(change) * float(one)}\n{one}\n")
        with SpecSession(model, drafter, **options) as session:
            n_before = n_decodes.value
            streams = [session.stream(prompt, **ENDLESS) for prompt in prompts]
            for stream in streams:
                for _ in stream:
                    pass
            tokens = [stream.result().tokens for stream in streams]
    found = {
        "distances": [tie(one, mine) or 0 for one, mine in zip(plain, tokens, strict=True)],
        "widths": widths[n_before : n_decodes.value],
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
