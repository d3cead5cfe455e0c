"""Files of heads: reasons for refusals, and where heads are found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import pytest
from heads import (
    eagle3_model,
    write_eagle3,
    write_glm,
    write_perfect_pair,
    write_qwen,
)
from random_model import (
    N_VOCAB,
    QWEN35,
    WIDTH,
    WRITERS,
    RandomModel,
    delta_net_model,
    write_dense,
)
from refusals import refusal
from rewriting import split
from session_options import Open
from specllama import SpecSession, _core
from specllama.__main__ import main

NO_END: dict[str, Any] = {"logit_bias": {2: -100.0}}
PROMPT = [1, *range(5, 40)] * 3


def without(name: str) -> RandomModel:
    del (model := eagle3_model()).tensors[name]
    return model


def changed(name: str, tensor: Any) -> RandomModel:
    (model := eagle3_model()).tensors[name] = np.asarray(tensor)
    return model


BAD_HEADS: dict[str, tuple[RandomModel, dict[str, Any], str]] = {
    "layer": (eagle3_model(), {"target_layers": [0, 1, 2]}, "layer 2"),
    "two layers": (eagle3_model(), {"target_layers": [0, 1]}, "three layers"),
    "layers of a wrong type": (eagle3_model(), {"target_layers": [0.0, 1.0, 1.0]}, "array of f32"),
    "width": (eagle3_model(), {"target_hidden_size": 64}, "states of 64 numbers"),
    "heads": (eagle3_model(), {"attention.key_length": 64, "attention.value_length": 32}, "differ"),
    "no fusion": (without("fc.weight"), {}, "fc.weight"),
    "few embeddings": (changed("token_embd.weight", np.ones((50, WIDTH))), {}, "fewer tokens"),
    "own tokens, no output": (
        changed("d2t", np.arange(9, dtype=np.int64)),
        {},
        "",
    ),
    "invalid tokens": (changed("d2t", np.full(N_VOCAB, N_VOCAB, np.int64)), {}, "token 96"),
    "tokens of a wrong type": (changed("d2t", np.zeros(N_VOCAB, np.int32)), {}, "d2t is of type"),
}


@pytest.mark.parametrize("fault", BAD_HEADS)
def test_unusable_heads_are_refused(tmp_path: Path, fault: str) -> None:
    model, fields, why = BAD_HEADS[fault]
    head = write_eagle3(tmp_path / "head.gguf", model, **fields)
    assert why in refusal(write_dense(tmp_path / "target.gguf"), head)


def test_a_head_of_another_model_is_refused(tmp_path: Path, bundled_model: Path) -> None:
    head = write_eagle3(tmp_path / "head.gguf")
    assert "does not provide" in refusal(WRITERS["recurrent"](tmp_path / "mamba.gguf"), head)
    assert "numbers" in refusal(bundled_model, head)
    assert "drafts for another model" in refusal(head, "ngram")
    # The widths agree, the vocabularies differ.
    write_perfect_pair(tmp_path, shares=False)
    other = write_eagle3(tmp_path / "other.gguf", target_hidden_size=WIDTH)
    assert "numbers" in refusal(tmp_path / "target.gguf", other)


def test_unusable_mtp_layers_are_refused(tmp_path: Path) -> None:
    assert "no layers of multi-token" in refusal(write_dense(tmp_path / "dense.gguf"), "mtp")
    left_out = WRITERS["delta net"](tmp_path / "left out.gguf")
    writer = delta_net_model(n_predicting=1)
    for name in [name for name in writer.tensors if ".nextn." in name]:
        del writer.tensors[name]
    assert "left out" in refusal(write_qwen(left_out, writer), "mtp")
    dense = write_glm(tmp_path / "dense glm.gguf", leading_dense_block_count=3)
    assert "does not support its layer of" in refusal(dense, "mtp")
    unknown = delta_net_model(n_predicting=1).write(
        tmp_path / "unknown.gguf", "kimi-linear", 3, QWEN35 | {"nextn_predict_layers": 1}
    )
    assert "no multi-token prediction for kimi-linear models" in refusal(unknown, "mtp")
    norm = delta_net_model(n_predicting=1)
    del norm.tensors["blk.2.nextn.hnorm.weight"]
    assert "hnorm" in refusal(write_qwen(tmp_path / "norm.gguf", norm), "mtp")


@pytest.mark.parametrize("length", [WIDTH - 1, WIDTH + 1, 4 * WIDTH, 2**26, 2**31])
def test_hidden_states_of_another_length_are_refused(tmp_path: Path, length: int) -> None:
    mtp = write_qwen(tmp_path / "mtp.gguf", embedding_length_out=length)
    assert f"its embedding_length_out is {length}" in refusal(mtp, "mtp")
    assert not _core.brings_head(str(mtp))
    with SpecSession(mtp, n_gpu_layers=0, n_threads=1) as session:  # these layers are ignored
        assert len(session.generate(PROMPT, max_tokens=5, **NO_END).tokens) == 5
    head = write_eagle3(tmp_path / "head.gguf", embedding_length_out=length)
    target = write_dense(tmp_path / "target.gguf")
    assert f"its embedding_length_out is {length}" in refusal(target, head)


def test_hidden_states_of_the_right_length_are_accepted(tmp_path: Path) -> None:
    mtp = write_qwen(tmp_path / "mtp.gguf", embedding_length_out=WIDTH)
    with SpecSession(mtp, "mtp", n_gpu_layers=0, n_threads=1, spec_length=3) as session:
        assert session.generate(PROMPT, max_tokens=5, **NO_END).stats.drafted > 0


WITHOUT_STATES = """
import sys
from pathlib import Path
from specllama import ModelError, SpecSession, _core
from specllama.model.found import look

model, mtp, head = (Path(one) for one in sys.argv[1:])
print(_core.brings_head(str(mtp)), look(head).could_draft_for(look(model)))
for draft in ("auto", "mtp"):
    try:
        with SpecSession(mtp, draft, n_threads=1, n_gpu_layers=0, spec_length=4) as session:
            print(len(session.generate([1, 5, 6] * 5, max_tokens=5).tokens))
    except ModelError as error:
        print(error)
try:
    SpecSession(model, head, n_threads=1, n_gpu_layers=0)
except ModelError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's linker")
def test_a_libllama_without_the_needed_functions_has_no_heads(tmp_path: Path) -> None:
    """One function is renamed in a copy of libllama."""
    name = b"_Z26llama_get_embeddings_nextnP13llama_context"
    for path in (Path(llama_cpp.__file__).parent / "lib").glob("lib*.so*"):
        if path.name == "libllama.so":
            library = path.read_bytes()
            assert library.count(name) > 0
            (tmp_path / path.name).write_bytes(library.replace(name, name[::-1]))
        elif "libllama" not in path.name:
            (tmp_path / path.name).symlink_to(path)
    model, mtp = write_dense(tmp_path / "dense.gguf"), write_qwen(tmp_path / "mtp.gguf")
    head = write_eagle3(tmp_path / "head.gguf")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_STATES, model, mtp, head],
        env=os.environ | {"LLAMA_CPP_LIB_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["False False", "5"]
    assert len(lines) == 4
    assert all("does not provide the hidden states" in line for line in lines[2:])


def test_models_command_lists_heads_with_their_targets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    write_dense(tmp_path / "target.gguf")
    write_eagle3(tmp_path / "head.gguf")
    write_qwen(tmp_path / "mtp.gguf")
    write_perfect_pair(other := tmp_path / "other", shares=True)
    assert main(["models", str(tmp_path), "--json"]) == 0
    found = {}
    for line in capsys.readouterr().out.splitlines():
        record = json.loads(line)
        if (path := Path(record["path"])).is_relative_to(tmp_path):
            found[path.relative_to(tmp_path).as_posix()] = record
    assert all(record["error"] is None for record in found.values())
    head, others = str(tmp_path / "head.gguf"), str(other / "head.gguf")
    assert found["target.gguf"]["drafts"] == [head]
    assert found["other/target.gguf"]["drafts"] == [others]
    assert head in found["mtp.gguf"]["drafts"]
    assert found["head.gguf"]["drafts"] == found["other/head.gguf"]["drafts"] == []
    assert [name for name, record in found.items() if record["mtp"]] == ["mtp.gguf"]
    heads = {name: record["head"] for name, record in found.items() if record["head"]}
    assert heads == dict.fromkeys(["head.gguf", "other/head.gguf"], "an EAGLE-3 head")
    assert main(["models", str(tmp_path)]) == 0
    table = capsys.readouterr().out.splitlines()
    assert [line for line in table if line.endswith("/other/head.gguf, an EAGLE-3 head")]


def test_a_split_file_drafts_with_its_mtp_layers(tmp_path: Path, open_session: Open) -> None:
    first, *_ = split(
        write_qwen(tmp_path / "model.gguf"), tmp_path / "parts" / "model.gguf", "qwen35", 5
    )
    assert _core.brings_head(str(first))
    stats = open_session(first, "auto").generate(PROMPT, max_tokens=20, **NO_END).stats
    assert stats.by_drafter["model"][0] > 0 == stats.drafter_errors
