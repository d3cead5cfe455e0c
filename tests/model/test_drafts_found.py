"""draft="auto" finds a draft model or head next to a model."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest
from any_model import architectures, write
from blocks import block_model, write_block
from heads import eagle3_model, write_eagle3, write_qwen
from prediction_files import write_own, write_side, write_without
from random_model import WIDTH, words, write_dense
from session_options import Open
from specllama import _core

NAME = "qwen35moe with prediction"
GREEDY: dict[str, Any] = {"max_tokens": 30, "logit_bias": {2: -math.inf}}
PROMPT = [1, *words(20, seed=3)]


def found(model: Path) -> str:
    return _core.automatic_draft(str(model), bundled_draft="")


def write_layers(path: Path, n_layers: int) -> Path:
    entry = architectures()["qwen3"]
    return write(path, "qwen3", entry | {"values": entry["values"] | {"block_count": n_layers}})


def test_a_head_next_to_a_model_drafts_for_it_and_is_reported(
    tmp_path: Path, open_session: Open, capfd: pytest.CaptureFixture[str]
) -> None:
    model, head = write_dense(tmp_path / "model.gguf"), write_eagle3(tmp_path / "eagle3-q8.gguf")
    plain = open_session(model, None).generate(PROMPT, **GREEDY)
    capfd.readouterr()
    generation = open_session(model, "auto", spec_length=3).generate(PROMPT, **GREEDY)
    assert generation.tokens == plain.tokens
    assert generation.stats.by_drafter["model"][0] > 0
    said = [line for line in capfd.readouterr().err.splitlines() if str(head) in line]
    assert len(said) == 1
    assert 'an EAGLE-3 head. To leave it out: draft="ngram" or --draft ngram.' in said[0]
    open_session(model, "auto").generate(PROMPT, **GREEDY)
    assert capfd.readouterr().err == ""  # the notice is printed once
    without = open_session(model, "ngram", spec_length=3).generate(PROMPT, **GREEDY)
    assert without.stats.by_drafter["model"] == (0, 0)


def test_a_file_of_prediction_layers_next_to_a_model_is_found(tmp_path: Path) -> None:
    model = write_without(tmp_path, NAME)
    assert found(model) == "ngram"
    side = write_side(tmp_path, NAME)
    assert found(model) == str(side)


def test_heads_that_do_not_fit_the_model_are_ignored(tmp_path: Path) -> None:
    model = write_dense(tmp_path / "model.gguf")
    write_eagle3(tmp_path / "eagle3-wide.gguf", target_hidden_size=2 * WIDTH)
    write_eagle3(tmp_path / "eagle3-deep.gguf", target_layers=[0, 1, 9])
    write_side(tmp_path, NAME)
    (tmp_path / "mtp-broken.gguf").write_bytes(b"GGUF" + bytes(100))
    (tmp_path / "dflash-folder.gguf").mkdir()
    (tmp_path / "eagle3-gone.gguf").symlink_to(tmp_path / "nowhere")
    assert found(model) == "ngram"
    # The header decides, not the name.
    fitting = write_eagle3(tmp_path / "mtp-q8_0.gguf")
    assert found(model) == str(fitting)


def test_the_draft_that_reads_the_fewest_bytes_is_chosen(tmp_path: Path) -> None:
    model = write_dense(tmp_path / "model.gguf")
    large = eagle3_model()
    large.tensors["blk.0.ffn_gate.weight"] = large.matrix(4096, WIDTH)
    large.tensors["blk.0.ffn_up.weight"] = large.matrix(4096, WIDTH)
    large.tensors["blk.0.ffn_down.weight"] = large.matrix(WIDTH, 4096)
    first = write_eagle3(tmp_path / "a-eagle3-.gguf", large, feed_forward_length=4096)
    assert found(model) == str(first)
    second = write_eagle3(tmp_path / "z-eagle3-.gguf")
    assert found(model) == str(second)


def test_a_block_drafter_is_chosen_if_one_decode_of_it_pays(tmp_path: Path) -> None:
    model = write_dense(tmp_path / "model.gguf")
    head = write_eagle3(tmp_path / "eagle3-.gguf")
    assert found(model) == str(head)
    block = write_block(tmp_path / "dflash-.gguf", "dflash")
    assert found(model) == str(block)
    # One decode of this one costs more than the tokens at its end are worth.
    write_block(tmp_path / "dflash-.gguf", "dflash", block_model("dflash", n_layers=8))
    assert found(model) == str(head)
    block.unlink()
    write_block(tmp_path / "dspark-.gguf", "dspark", target_layers=[0, 9])
    assert found(model) == str(head)


def test_the_models_own_prediction_layers_are_chosen_if_they_read_less(tmp_path: Path) -> None:
    own = write_own(tmp_path, NAME)
    write_side(tmp_path, NAME)  # the same layers
    assert found(own) == "mtp"
    qwen = write_qwen(tmp_path / "qwen.gguf")
    assert found(qwen) in ("mtp", str(write_eagle3(tmp_path / "eagle3-.gguf")))


def test_a_much_smaller_model_of_the_same_family_is_chosen(tmp_path: Path) -> None:
    model = write_layers(tmp_path / "large.gguf", 40)
    write_layers(tmp_path / "middle.gguf", 20)
    write(tmp_path / "other.gguf", "gemma2", architectures()["gemma2"])
    assert found(model) == "ngram"
    small = write_layers(tmp_path / "small.gguf", 1)
    assert found(model) == str(small)


def test_drafts_are_found_in_all_snapshots_of_a_repository(tmp_path: Path) -> None:
    folder = tmp_path / "models--org--some-model" / "snapshots"
    for name in ("first/deep", "second"):
        (folder / name).mkdir(parents=True)
    blob = write_without(tmp_path, NAME)
    model = folder / "first" / "deep" / "model.gguf"
    model.symlink_to(os.path.relpath(blob, model.parent))
    assert found(model) == "ngram"
    side = write_side(folder / "second", NAME)
    assert found(model) == str(side)
    # Outside of a cache, only the model's folder is searched.
    other = tmp_path / "other"
    (other / "below").mkdir(parents=True)
    write_side(other / "below", NAME)
    assert found(write_without(other, NAME)) == "ngram"
