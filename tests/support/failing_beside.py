"""A process where a decode fails while another request waits for a draft: see failing_llama.c.
Prints what came of the one that waited.

    python failing_beside.py LIBRARY MODEL OPTIONS"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any

PROMPT = [1, *range(5, 65)] * 2


def main(library: str, model: str, chosen: str) -> None:
    failing = ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    from rounds import rounds_of
    from specllama import DecodeError, SpecSession

    threshold = ctypes.c_int.in_dll(failing, "n_sequences_failing")
    length: dict[str, Any] = {"max_tokens": 40, "logit_bias": {2: -100.0}}
    options = {"draft": None, "offers": True, "n_seq": 2} | json.loads(chosen)
    with SpecSession(model, n_threads=1, n_gpu_layers=0, **options) as session:
        expected = session.generate(PROMPT, **length).tokens
        waiting = session.host(PROMPT, paced=True, **length)
        found = [token for one in rounds_of(waiting) for token in one.tokens]
        threshold.value = 1
        error = None
        try:
            session.generate([7, 8, 9], max_tokens=3)
        except DecodeError as failed:
            error = str(failed)
        threshold.value = 0
        assert error is not None
        lost = None
        try:
            while len(found) < len(expected):
                waiting.offer(len(PROMPT) + len(found), expected[len(found) :][:3])
                found += [token for one in rounds_of(waiting) for token in one.tokens]
        except DecodeError as failed:
            lost = str(failed)
        rest = session.generate([*PROMPT, *found], **length | {"max_tokens": 40 - len(found)})
    print(json.dumps({"found": found, "lost": lost, "rest": rest.tokens, "expected": expected}))


if __name__ == "__main__":
    main(*sys.argv[1:])
