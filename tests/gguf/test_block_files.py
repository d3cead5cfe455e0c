"""Files of block drafters: reasons for refusals, where they are found, and damaged files."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import fuzz
import mutations
import numpy as np
import pytest
from blocks import KINDS, block_model, write_block
from random_model import N_VOCAB, WIDTH, WRITERS, RandomModel, write_dense
from refusals import refusal
from specllama import SpecSession
from specllama.__main__ import main


def without(kind: str, name: str) -> RandomModel:
    del (model := block_model(kind)).tensors[name]
    return model


def with_tensor(kind: str, name: str, tensor: Any) -> RandomModel:
    (model := block_model(kind)).tensors[name] = np.asarray(tensor)
    return model


BAD_FILES: dict[str, tuple[str, RandomModel | None, dict[str, Any], str]] = {
    "layer": ("dflash", None, {"target_layers": [0, 2]}, "layer 2"),
    "no layers": ("dflash", None, {"target_layers": None}, "does not name layers"),
    "heads": (
        "dflash",
        None,
        {"attention.key_length": 64, "attention.value_length": 32},
        "differ",
    ),
    "no mask": ("dspark", None, {"tokenizer.ggml.mask_token_id": None}, "no mask token"),
    "mask": (
        "dspark",
        None,
        {"tokenizer.ggml.mask_token_id": N_VOCAB},
        f"mask_token_id is {N_VOCAB}",
    ),
    "no block": ("dspark", None, {"block_size": None}, "its dflash.block_size is missing"),
    "no block of a lattice": ("dflash2", None, {"block_size": None}, "block_size is missing"),
    "empty block": ("dflash", None, {"block_size": 1}, "block_size is 1"),
    "block": ("dspark", None, {"block_size": 0}, "block_size is 0"),
    "no fusion": ("dflash", without("dflash", "fc.weight"), {}, "fc.weight"),
    "half a bias": ("dspark", without("dspark", "markov_w2.weight"), {}, "markov_w2"),
    "both": (
        "dflash2",
        with_tensor("dflash2", "markov_w1.weight", np.ones((N_VOCAB, 32))),
        {},
        "of both DFlash2 and DSpark",
    ),
    "many candidates": ("dflash2", None, {"selector_top_k": 11}, "selector_top_k is 11"),
    "no candidates": ("dflash2", None, {"selector_top_k": None}, "selector_top_k is 0"),
    "taps": ("dflash2", None, {"conv_kernel_size": None}, "conv"),
    "groups": ("dflash2", None, {"conv_group_size": 3}, "conv_group_size"),
    "invalid tokens": (
        "dflash",
        with_tensor("dflash", "d2t", np.full(N_VOCAB, N_VOCAB, np.int64)),
        {},
        f"token {N_VOCAB}",
    ),
    "own tokens, no output": (
        "dflash",
        with_tensor("dflash", "d2t", np.arange(9, dtype=np.int64)),
        {},
        "no output.weight",
    ),
    "states": ("dflash", None, {"embedding_length_out": 64}, "embedding_length_out is 64"),
    "a draft of deepseek4": (
        "dspark",
        None,
        {"hyper_connection_count": 4},
        "a DSpark draft for deepseek4",
    ),
}


@pytest.mark.parametrize("fault", BAD_FILES)
def test_unusable_block_drafters_are_refused(tmp_path: Path, fault: str) -> None:
    kind, model, fields, why = BAD_FILES[fault]
    drafter = write_block(tmp_path / "draft.gguf", kind, model, **fields)
    assert why in refusal(write_dense(tmp_path / "target.gguf"), drafter)


def test_a_block_drafter_of_another_model_is_refused(tmp_path: Path, bundled_model: Path) -> None:
    drafter = write_block(tmp_path / "draft.gguf", "dflash")
    for kind in ("recurrent", "sliding window"):
        target = WRITERS[kind](tmp_path / f"{kind}.gguf")
        assert "does not provide the layer inputs" in refusal(target, drafter)
    assert f"states of {WIDTH} numbers" in refusal(bundled_model, drafter)
    assert "a block drafter, which drafts for another model" in refusal(drafter, "ngram")


def test_models_command_lists_block_drafters_with_their_targets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    target = write_dense(tmp_path / "target.gguf")
    drafters = [str(write_block(tmp_path / f"{kind}.gguf", kind)) for kind in KINDS]
    assert main(["models", str(tmp_path), "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(record["error"] is None for record in records)
    drafts = {record["path"]: record["drafts"] for record in records}
    assert sorted(drafts[str(target)]) == sorted(drafters)


def try_case(index: int, folder: Path) -> None:
    rng = fuzz.case("blocks", index)
    target, sound = folder / "target.gguf", folder / f"{KINDS[index % 3]}.gguf"
    if not target.exists():
        write_dense(target)
    if not sound.exists():
        write_block(sound, sound.stem)
    damaged = folder / "damaged.gguf"
    fuzz.note(sound.stem, mutations.mutate(sound, damaged, rng))
    with fuzz.refusals_allowed():
        generate(rng, target, damaged)


def generate(rng: Random, target: Path, drafter: Path) -> None:
    options: dict[str, Any] = {"n_gpu_layers": 0, "n_threads": 1, "n_ctx": 64}
    options |= {"n_seq": rng.choice([1, 2]), "spec_length": rng.choice([3, 64])}
    with SpecSession(target, drafter, **options) as session:
        prompts = [[1, *rng.choices(range(3, 90), k=rng.randrange(1, 20))] for _ in range(2)]
        session.generate(prompts, max_tokens=6, ignore_eos=True, temperature=rng.choice([0.0, 1.0]))


@pytest.mark.parametrize("n_cases", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_damaged_block_drafters_never_end_the_process(n_cases: int, tmp_path: Path) -> None:
    assert fuzz.failures(__file__, n_cases, tmp_path) == []
