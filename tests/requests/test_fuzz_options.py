"""Sessions and generations with random options are refused, or they run."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from random import Random
from typing import Any

import fuzz
import pytest
from heads import write_eagle3, write_glm, write_qwen
from random_model import WRITERS
from specllama import SpecSession
from specllama.model.session_options import FIELDS as SESSION_FIELDS
from specllama.requests.options import FIELDS
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL

WRONG = [-1, 0, 2**31, 10**30, 0.5, -0.0, math.nan, math.inf, "", "x", "auto", b"x", [], {}, True]
TINY = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 18, 31, 33, 64]
TYPES = ["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]
SESSION: dict[str, list[Any]] = {
    "n_ctx": [*TINY, 100, 257, 500, None],
    "n_seq": [1, 1, 2, 3, 5, 16, 64],
    "n_batch": [*TINY, 100, 512, 8192],
    "n_threads": [1, 1, 2, 3],
    "flash_attn": [True, False, "auto"],
    "kv_type": [*TYPES, None],
    "exact": [True, False, "auto"],
    "rope_scaling": ["none", "linear", "yarn"],
    "rope_scale": [0.001, 0.5, 2, 1000],
    "rope_freq_base": [1.0, 1e4, 1e12],
    "yarn_orig_ctx": [1, 8, 1024],
    "load_mode": ["none", "mmap", "mlock", "mmap+mlock", "dio"],
    "cache_ram": [0, 1, 100, -1],
    "memory": [0, 1, "off", None],
    "ctx_checkpoints": [0, 1, 2, 5, 1024],
    "checkpoint_ram": [0, 1, 100, -1],
    "spec_length": [1, 2, 3, 8, 17, 63, 64, "auto"],
    "spec_tree": ["off", "auto", 1, 2, 3, 8],
    "cascade": [True, False],
    "verifies": [True, False],
    "ngram_order": [2, 8],
    "ngram_window": [0, 1, 5],
    "ngram_max_bytes": [65536, 1 << 20],
    "ngram_draw": [True, False],
    "draft_type": ["auto", "keep", "q4_0", "q4_1", "q8_0", "iq4_nl"],
    "draft_n_threads": [1, 2],
    "draft_kv_type": TYPES,
    "draft_p_min": [0.0, 0.3, 1.0],
    "draft_temperature": [0.0, 1.0],
    "draft_top_k": [0, 1, 5],
    "draft_top_p": [0.0, 0.5, 1.0],
    "draft_min_p": [0.0, 0.5, 1.0],
    "max_queue": [0, 1, 64],
}
NUMBERS = [-1, 0, 1, 2, 7, 64, 1000, 0.1, 0.5, 0.99, 1.0, 1.5, 2.0, 100.0]
GENERATION: dict[str, list[Any]] = {
    "max_tokens": [0, 1, 2, 5, 9, -1, None],
    "stop": ["w1", " ", ["a", "b"], "\n"],
    "seed": [0, 1, 2**64 - 1, None],
    "grammar": ['root ::= " w" [1-9]+', "root ::= [a-z ]*"],
    "grammar_triggers": [["w"], [" w1", "x"]],
    "json_schema": [{}, {"type": "integer"}, {"enum": ["a", "b"]}],
    "logit_bias": [{5: 10.0}, {1: -math.inf, 2: -100.0}],
    "logprobs": [0, 1, 100, None],
    "acceptance": ["coupled", "rejection"],
    "reference": ["w1 w2 w3", [5, 6, 7]],
    "dry_sequence_breakers": [None, ["\n"], " "],
    "ignore_eos": [True, False],
    "echo": [True, False],
    "trace": [True, False],
    "cache_prompt": [True, False],
    "remember": [True, False],
    "id_slot": [-1, 0, 1],
    "message_ends": [[], [1], [1, 2], None],
    "spec_length": [0, 1, 5, 1000, None],
    "spec_type": ["auto", "none", "model", "ngram"],
}
WRITE = {
    **WRITERS,
    "head": write_eagle3,
    "mtp": write_qwen,
    "glm": write_glm,
}


def test_the_fuzz_test_covers_all_session_options() -> None:
    """Except for those that affect other processes, or name files, devices and callbacks."""
    beyond = {"model", "draft", "device", "draft_device", "rpc", "lora", "corpus", "target"}
    beyond |= {"target_key", "target_timeout", "tokenizer", "tensor_split", "memory_file"}
    beyond |= {"n_gpu_layers", "n_cpu_moe", "draft_n_gpu_layers", "chat_template"}
    beyond |= {"template_args", "progress", "verbose"}
    beyond |= {"mmproj", "mmproj_offload", "image_min_tokens", "image_max_tokens"}
    names = {*inspect.signature(SpecSession).parameters, *SESSION_FIELDS} - {"options"}
    assert {*SESSION} | beyond == names


def drawn(rng: Random, values: dict[str, list[Any]], most: int) -> dict[str, Any]:
    options = {}
    for name in rng.sample(sorted(values), rng.randrange(most)):
        wrong = rng.random() < 0.04
        options[name] = rng.choice(WRONG if wrong else values[name])
    return options


def models(folder: Path, rng: Random) -> tuple[Path, Any]:
    """Return a model and its drafter."""
    if rng.random() < 0.3:
        return BUNDLED_MODEL, rng.choice([None, "ngram", "auto", BUNDLED_DRAFT])
    for name, write in WRITE.items():
        if not (folder / f"{name}.gguf").exists():
            write(folder / f"{name}.gguf")
    name = rng.choice([name for name in WRITE if name != "head"])
    drafts = [None, "ngram", "auto", "mtp", folder / "head.gguf", folder / "dense.gguf"]
    return folder / f"{name}.gguf", rng.choice(drafts)


def use(rng: Random, session: SpecSession, values: dict[str, list[Any]]) -> None:
    n_prompt = min(rng.choice([1, 2, 9, 40]), session.n_ctx)
    prompt: Any = [rng.randrange(3, 90) for _ in range(n_prompt)]
    options = {"max_tokens": 6} | drawn(rng, values, 6)
    if rng.random() < 0.1:
        n_beams = rng.choice([1, 2, 5, 16, 64])
        session.beam_search(prompt, n_beams=n_beams, max_tokens=4)
    if rng.random() < 0.3:
        n = rng.choice([1, 2, 4])
        session.generate([prompt, prompt[:1], prompt * 2], n=n, **options)
    else:
        session.generate(prompt, **options)


def try_case(index: int, folder: Path) -> None:
    rng = fuzz.case("options", index)
    model, draft = models(folder, rng)
    sizes = {name: SESSION[name] for name in ("n_ctx", "n_batch", "n_seq", "spec_length")}
    given = {"n_threads": 1, "n_ctx": 64} | drawn(rng, sizes, 5) | drawn(rng, SESSION, 10)
    values = {name: GENERATION.get(name, NUMBERS) for name in FIELDS}
    # The options explain a crash.
    fuzz.note(model.stem, draft, given)
    with (
        fuzz.refusals_allowed(),
        SpecSession(model, draft, n_gpu_layers=0, **given) as session,
    ):
        for _ in range(3):
            with fuzz.refusals_allowed():
                use(rng, session, values)


@pytest.mark.parametrize("n_cases", fuzz.sizes(500))
def test_random_options_never_end_the_process(n_cases: int, tmp_path: Path) -> None:
    assert fuzz.failures(__file__, n_cases, tmp_path) == []
