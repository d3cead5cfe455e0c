"""The PyTorch network of models/, read from GGUF and compared with llama.cpp."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import random_model
from folders import MODELS
from llama_cpp import Llama
from numpy.typing import NDArray
from random_model import HEAD, WIDTH, WRITERS, RandomModel, dense_model, write_dense
from real_models import real_model

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

TOKENS = [1, *range(5, 40), *range(80, 50, -3), *range(5, 40)]
GGML_TYPE_F32 = 0

FLOAT_TOLERANCE = 1e-3
"""Largest difference of a logit if both sides compute in float32."""

Floats = NDArray[np.float32]


@pytest.fixture
def load_gguf(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(MODELS)
    import network

    return network.load_gguf


def by_llama_cpp(path: Path, tokens: list[int]) -> Floats:
    """Return logits (positions, vocabulary), with a float32 KV memory."""
    memory = {"type_k": GGML_TYPE_F32, "type_v": GGML_TYPE_F32}
    llama = Llama(str(path), n_ctx=512, n_gpu_layers=0, logits_all=True, verbose=False, **memory)
    llama.eval(tokens)
    rows = np.array(llama.scores[: len(tokens)])
    llama.close()
    return rows


def by_network(network: Any, tokens: list[int]) -> Floats:
    with torch.no_grad():
        rows: Floats = network(torch.tensor([tokens]))[0].numpy()
    return rows


def grouped(model: RandomModel) -> dict[str, Any]:
    """Two query heads share the keys and values of one head."""
    for layer, name in ((layer, name) for layer in range(2) for name in ("attn_k", "attn_v")):
        model.tensors[f"blk.{layer}.{name}.weight"] = model.matrix(HEAD, WIDTH)
    return {"attention.head_count_kv": 1}


def tied(model: RandomModel) -> dict[str, Any]:
    del model.tensors["output.weight"]
    return {}


def slower(model: RandomModel) -> dict[str, Any]:
    model.tensors["rope_freqs.weight"] = np.linspace(1, 8, HEAD // 2)
    return {}


KINDS: dict[str, Callable[[RandomModel], dict[str, Any]]] = {
    "grouped": grouped,
    "tied": tied,
    "slower rotations": slower,
    "another base": lambda model: {"rope.freq_base": 500.0},
    "another epsilon": lambda model: {"attention.layer_norm_rms_epsilon": 0.5},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_network_computes_llama_cpps_logits(
    kind: str, tmp_path: Path, load_gguf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random_model, "FLOATS", ("weight",))  # no weight is rounded to Q8_0
    model = dense_model(seed=1)
    facts = {"rope.dimension_count": HEAD} | KINDS[kind](model)
    path = model.write(tmp_path / "model.gguf", "llama", 2, facts)
    expected = by_llama_cpp(path, TOKENS)
    found = by_network(load_gguf(path), TOKENS)
    assert np.abs(found - expected).max() < FLOAT_TOLERANCE
    ordinary = by_network(load_gguf(write_dense(tmp_path / "ordinary.gguf")), TOKENS)
    assert np.abs(ordinary - expected).max() > 100 * FLOAT_TOLERANCE


def test_the_network_computes_the_logits_of_a_real_model(load_gguf: Any) -> None:
    """Its weights are Q4_1, for which llama.cpp rounds activations to eight bits."""
    path = real_model("smollm2")
    tokens = [1, *range(1000, 30000, 700)]
    expected, found = by_llama_cpp(path, tokens), by_network(load_gguf(path), tokens)
    assert (expected.argmax(-1) == found.argmax(-1)).mean() > 0.85
    assert np.sqrt(np.square(found - expected).mean()) < 0.1 * expected.std()


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (WRITERS["recurrent"], "architecture mamba, not llama"),
        (WRITERS["experts"], "not a dense model without biases: blk.0.ffn_down"),
        (lambda path: write_dense(path, **{"rope.dimension_count": HEAD // 2}), "rotary positions"),
    ],
)
def test_the_network_refuses_other_architectures(
    write: Callable[[Path], Path], why: str, tmp_path: Path, load_gguf: Any
) -> None:
    with pytest.raises(SystemExit, match=why):
        load_gguf(write(tmp_path / "model.gguf"))


def test_padded_texts_of_different_lengths_get_the_logits_of_each_alone(
    tmp_path: Path, load_gguf: Any
) -> None:
    """Shorter texts are padded in front; token by token, and all tokens at once."""
    import network as module

    model = dense_model(seed=1)
    facts = {"rope.dimension_count": HEAD} | grouped(model)
    network = load_gguf(model.write(tmp_path / "model.gguf", "llama", 2, facts))
    rows = [TOKENS[:40], TOKENS[20:50]]
    padded = torch.tensor([rows[0], [0] * 10 + rows[1]])
    seen = torch.ones(2, 40, dtype=torch.bool)
    seen[1, :10] = False
    memories = [module.Memory(network, seen) for _ in network.blk]
    with torch.no_grad():
        parts = [network.go_on(part, memories) for part in padded.split([20, 1, 19], dim=1)]
    for row, tokens in enumerate(rows):
        alone = by_network(network, tokens)
        for found, end in zip(parts, (20, 21, 40), strict=True):
            place = end - 1 - (40 - len(tokens))
            assert np.abs(found[row].numpy() - alone[place]).max() < FLOAT_TOLERANCE
