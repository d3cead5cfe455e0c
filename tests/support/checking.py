"""A process that answers with n-grams and the bundled draft model. It prints the answer, the
drafts, and the number of tokens of each decode of the draft model.

    python checking.py LIBRARY TARGET PROMPT OPTIONS

LIBRARY: see recording_llama.c. PROMPT: the name of a prompt, which is given twice, so that it can
be copied. OPTIONS: those of the request. The planner starts with free wide decodes, so that the
first copies are as long as possible on every machine.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
from pathlib import Path


def main(library: str, target: str, name: str, chosen: str) -> None:
    recording = ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    from prompts import PROMPTS
    from session_options import EXACT, believe_wide_decodes_are_free, learn_costs
    from specllama import SpecSession
    from specllama.session import BUNDLED_DRAFT

    n_decodes = ctypes.c_int.in_dll(recording, "n_decodes")
    widths = (ctypes.c_int * (1 << 16)).in_dll(recording, "widths")
    contexts = (ctypes.c_void_p * (1 << 16)).in_dll(recording, "contexts")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["SPECLLAMA_CACHE"] = cache
        learn_costs(SpecSession(target, BUNDLED_DRAFT, **EXACT))
        believe_wide_decodes_are_free(Path(cache))
        with SpecSession(target, BUNDLED_DRAFT, **EXACT) as session:
            tokens = session.tokenize(PROMPTS[name])
            first = n_decodes.value
            answer = session.generate([*tokens, *tokens], trace=True, **json.loads(chosen))
    # The first decode is the target's, because it processes the prompt first.
    of_draft_model = [i for i in range(first, n_decodes.value) if contexts[i] != contexts[first]]
    found = {
        "tokens": answer.tokens,
        "drafts": [
            [(one.token, one.confidence, one.drafter) for one in each.draft]
            for each in answer.trace.rounds
        ],
        "positions": [each.position for each in answer.trace.rounds],
        "widths": [widths[i] for i in of_draft_model],
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
