"""A process whose decodes fail on demand: see failing_llama.c. It prints the outcome of its
requests.

    python failing_decodes.py LIBRARY MODEL OPTIONS N_SEQUENCES WHEN

Decodes for at least N_SEQUENCES fail: from the start, or after as many requests as slots have begun
(WHEN is "start" or "begun").
"""

from __future__ import annotations

import ctypes
import json
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any


def main(library: str, model: str, chosen: str, n_sequences: str, when: str) -> None:
    options = {"draft": "ngram"} | json.loads(chosen)
    failing = ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    from specllama import ArgumentError, DecodeError, Generation, SpecSession

    threshold = ctypes.c_int.in_dll(failing, "n_sequences_failing")
    prompts = [[1, *range(5 + i, 65)] * 2 for i in range(3)]
    # Long enough that no request has ended when decodes begin to fail.
    length: dict[str, Any] = {"max_tokens": 800, "logit_bias": {2: -100.0}}

    def all_rest(session: SpecSession) -> list[Generation]:
        return [
            session.generate([*prompt, *tokens], **(length | {"max_tokens": 800 - len(tokens)}))
            for prompt, tokens in zip(prompts, found, strict=True)
        ]

    with SpecSession(model, n_threads=1, n_gpu_layers=0, **options) as session:
        expected = [session.generate(prompt, **length).tokens for prompt in prompts]
        session.generate([7], max_tokens=1)
        if when == "start":
            threshold.value = int(n_sequences)
        handles = [session.submit(prompt, **length) for prompt in prompts]
        for handle in handles[: options["n_seq"]] if when == "begun" else []:
            next(iter(handle))
        threshold.value = int(n_sequences)
        errors: list[str | None] = []
        for handle in handles:
            try:
                handle.result()
                errors.append(None)
            except DecodeError as error:
                errors.append(str(error))
        threshold.value = 0
        generations = [handle.so_far() for handle in handles]
        found = [generation.tokens if generation else [] for generation in generations]
        # The memory, and the state saved from it, contain what the session says.
        of_saved = None
        with tempfile.TemporaryDirectory() as folder, suppress(ArgumentError):
            session.save_state(state := Path(folder) / "state")  # refused if nothing is left
            with SpecSession(model, n_threads=1, n_gpu_layers=0, **options) as other:
                other.load_state(state)
                of_saved = [one.tokens for one in all_rest(other)]
        rest = all_rest(session)
    n_failed = ctypes.c_int.in_dll(failing, "n_failed").value
    drafted = sum(one.stats.drafted for one in rest)
    outcome = {
        "n_failed": n_failed,
        "errors": errors,
        "found": found,
        "rest": [one.tokens for one in rest],
        "of_saved": of_saved,
        "expected": expected,
        "n_drafter_errors": sum(one.stats.drafter_errors for one in generations if one),
        "right": sum(one.stats.accepted for one in rest) / max(drafted, 1),
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
