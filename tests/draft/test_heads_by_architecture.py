"""Heads for other architectures than those of test_heads.py: MTP, EAGLE-3, and the assistants of
Gemma 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from any_model import architectures, has_states, unchanged, write
from numpy.typing import NDArray
from random_model import words
from session_options import EXACT_HERE, Open
from specllama import ModelError, SpecSession
from specllama.model.found import look

WITH_MTP = [name for name in architectures() if name.endswith(" with prediction")]
TARGETS = [
    *("bailingmoe3 with prediction", "deepseek4", "gemma4", "gpt-oss", "hunyuan_vl", "lfm2moe"),
    *("mimo2 with prediction", "minimax-01", "minimax-m2", "muse-glimmer", "nanbeige"),
    *("nemotron_h", "qwen35moe", "qwen3moe", "qwen3next"),
]
"""Targets of EAGLE-3 heads."""

WITH_LAST_OUTPUT = ["deepseek4", "mimo2 with prediction", "nemotron_h"]
"""Targets whose last layer's output such a head can also read."""

EAGLE3: dict[str, Any] = {
    "values": {"block_count": 1, "target_layers": [0, 1, 1], "target_hidden_size": 128},
    "tensors": {
        "token_embd.weight": [128, 128],
        "output.weight": [128, 128],
        "output_norm.weight": [128],
        "fc.weight": [384, 128],
        "blk.0.attn_norm.weight": [128],
        "blk.0.attn_norm_2.weight": [128],
        "blk.0.attn_q.weight": [256, 128],
        "blk.0.attn_k.weight": [256, 128],
        "blk.0.attn_v.weight": [256, 128],
        "blk.0.attn_output.weight": [128, 128],
        "blk.0.ffn_norm.weight": [128],
        "blk.0.ffn_gate.weight": [128, 96],
        "blk.0.ffn_up.weight": [128, 96],
        "blk.0.ffn_down.weight": [96, 128],
    },
}
ROUNDED: dict[str, Any] = {"kv_type": "f32", "flash_attn": False}
"""Options with the least rounding, for models that cannot be exact."""

HEAD: dict[str, Any] = {"draft_kv_type": "f32"}
GREEDY: dict[str, Any] = {"max_tokens": 40, "logit_bias": {2: -math.inf}}
PROMPTS = [[1, *words(n, seed=n)] for n in (0, 5, 70, 110)]

ASSISTANT: dict[str, Any] = {
    "values": {
        "block_count": 2,
        "nextn_predict_layers": 2,
        "attention.shared_kv_layers": 2,
        "embedding_length": 192,
        "embedding_length_out": 128,
        "attention.sliding_window": 32,
        "attention.sliding_window_pattern": [True, False],
        "attention.key_length": 64,
        "attention.value_length": 64,
        "rope.dimension_count": 64,
        "attention.key_length_swa": 32,
        "attention.value_length_swa": 32,
        "rope.dimension_count_swa": 32,
        "rope.freq_base_swa": 10000.0,
    },
    "tensors": {
        "token_embd.weight": [192, 128],
        "output_norm.weight": [192],
        "nextn.post_projection.weight": [192, 128],
        "nextn.pre_projection.weight": [256, 192],
        "rope_freqs.weight": [32],
        "blk.*.attn_norm.weight": [192],
        "blk.0.attn_q.weight": [192, 64],
        "blk.0.attn_output.weight": [64, 192],
        "blk.0.attn_q_norm.weight": [32],
        "blk.1.attn_q.weight": [192, 128],
        "blk.1.attn_output.weight": [128, 192],
        "blk.1.attn_q_norm.weight": [64],
        "blk.*.post_attention_norm.weight": [192],
        "blk.*.layer_output_scale.weight": [1],
        "blk.*.ffn_norm.weight": [192],
        "blk.*.ffn_gate.weight": [192, 96],
        "blk.*.ffn_up.weight": [192, 96],
        "blk.*.ffn_down.weight": [96, 192],
        "blk.*.post_ffw_norm.weight": [192],
    },
}

Pair = tuple[Path, str | Path]
Changed = Callable[[str, NDArray[np.float64]], NDArray[np.float64]]


def write_gemma(folder: Path, changed: Changed = unchanged) -> Path:
    return write(folder / "gemma4.gguf", "gemma4", architectures()["gemma4"], changed)


def write_assistant(folder: Path, changed: Changed = unchanged) -> Path:
    return write(folder / "assistant.gguf", "gemma4-assistant", ASSISTANT, changed)


def write_eagle3(folder: Path, **values: Any) -> Path:
    entry = EAGLE3 | {"values": EAGLE3["values"] | values}
    return write(folder / "head.gguf", "eagle3", entry)


@pytest.fixture(
    scope="module",
    params=[
        *(("mtp", name) for name in WITH_MTP),
        *(("eagle3", name) for name in TARGETS),
        ("assistant", "gemma4"),
    ],
    ids="-".join,
)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A random target and its random head."""
    kind, name = request.param
    folder = tmp_path_factory.mktemp("models")
    model = write(folder / f"{name}.gguf", name, architectures()[name])
    if kind == "mtp":
        return model, "mtp"
    return model, write_assistant(folder) if kind == "assistant" else write_eagle3(folder)


@pytest.fixture(scope="module")
def numbers(pair: Pair) -> dict[str, Any]:
    return numbers_for(pair[0].stem)


def numbers_for(name: str) -> dict[str, Any]:
    """Return options with which a target has no near-ties, or as few as possible."""
    return ROUNDED if has_states(name) else {"exact": EXACT_HERE}


@pytest.mark.parametrize(
    ("options", "temperature"),
    [
        ({}, 0.0),
        ({"n_seq": 3}, 1.0),
        ({"spec_tree": 3}, 1.0),
        ({"spec_length": "auto"}, 0.0),
        pytest.param({}, 1.0, marks=pytest.mark.slow),
        pytest.param({"n_seq": 3}, 0.0, marks=pytest.mark.slow),
        pytest.param({"spec_tree": 3}, 0.0, marks=pytest.mark.slow),
        pytest.param({"spec_length": "auto"}, 1.0, marks=pytest.mark.slow),
    ],
)
def test_drafts_of_random_heads_of_other_architectures_change_no_token(
    pair: Pair,
    numbers: dict[str, Any],
    open_session: Open,
    options: dict[str, Any],
    temperature: float,
) -> None:
    how = GREEDY | {"temperature": temperature, "seed": 1}
    plain = open_session(pair[0], None, **numbers)
    session = open_session(*pair, **({"spec_length": 3} | HEAD | numbers | options))
    for prompt, generation in zip(PROMPTS, session.generate(PROMPTS, **how), strict=True):
        assert generation.tokens == plain.generate(prompt, **how).tokens
        assert generation.stats.drafter_errors == 0
        assert generation.stats.by_drafter["model"][0] > 0 or "spec_length" in options


def test_a_head_drafts_as_in_a_new_session(
    pair: Pair, numbers: dict[str, Any], open_session: Open
) -> None:
    """The states of rejected drafts are dropped, and no accepted token is missing."""
    session = open_session(*pair, spec_length=3, **HEAD, **numbers)
    prompt = PROMPTS[2]
    generation = session.generate(prompt, trace=True, **GREEDY)
    assert generation.trace is not None
    rounds = [one for one in generation.trace.rounds if one.draft]
    assert len(rounds) > 10
    fresh = open_session(*pair, spec_length=3, **HEAD, **numbers)
    for one in rounds:
        # The round that ends a prompt drafts nothing.
        fresh.generate([8], max_tokens=1)
        said = [*prompt, *generation.tokens[: one.position - 1]]
        again = fresh.generate(said, trace=True, **GREEDY | {"max_tokens": 8})
        assert again.stats.reused_tokens == 0
        assert again.trace is not None
        drafted = [token.token for token in again.trace.rounds[1].draft]
        assert drafted[: len(one.draft)] == [token.token for token in one.draft]


def depend_on_last_token(tensor: str, data: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make the next token depend only on the last one, in the target and in its head."""
    outputs = ("attn_output.weight", "attn_output_b.weight", "ssm_out.weight")
    if tensor.endswith(outputs) or ".ffn_down" in tensor:
        return 0 * data
    if tensor.endswith("nextn.eh_proj.weight"):
        width = len(data)
        return np.concatenate([np.eye(width), np.zeros((width, width))], axis=1)
    if tensor.endswith("norm.weight"):
        return 0 * data + 1
    if tensor == "token_embd.weight":  # some heads subtract the mean, the target does not
        return data - data.mean(axis=1, keepdims=True)
    return data


@pytest.mark.parametrize("name", WITH_MTP)
def test_perfect_heads_of_other_architectures_are_always_accepted(
    name: str, tmp_path: Path, open_session: Open
) -> None:
    """States and tokens stay in step: from prompts, after drafts, and next to other requests."""
    model = write(tmp_path / "knowing.gguf", name, architectures()[name], depend_on_last_token)
    for n_seq in (1, 3):
        options = numbers_for(name) | HEAD | {"n_seq": n_seq}
        session = open_session(model, "mtp", spec_length=5, **options)
        for generation in session.generate(PROMPTS, **GREEDY):
            stats = generation.stats
            assert stats.drafter_errors == 0
            assert stats.drafted == stats.accepted > 20


@pytest.mark.parametrize("name", WITH_LAST_OUTPUT)
def test_a_head_can_read_the_last_layers_output(
    name: str, tmp_path: Path, open_session: Open
) -> None:
    """The drafts differ with and without it."""
    entry = architectures()[name]
    model = write(tmp_path / "model.gguf", name, entry)
    n = entry["values"]["block_count"] - entry["values"].get("nextn_predict_layers", 0)
    drafted = []
    for layers in ([0, 1, 1], [0, 1, n]):
        head = write_eagle3(tmp_path, target_layers=layers)
        session = open_session(model, head, spec_length=3, **HEAD, **numbers_for(name))
        generation = session.generate(PROMPTS[2], trace=True, **GREEDY)
        assert generation.stats.drafter_errors == 0
        assert generation.trace is not None
        drafted.append([t.token for one in generation.trace.rounds for t in one.draft])
    assert drafted[0] != drafted[1]
    with pytest.raises(ModelError, match=f"the input of layer {n + 1}"):
        SpecSession(model, write_eagle3(tmp_path, target_layers=[0, 1, n + 1]), n_ctx=128)


def test_a_gemma_assistant_gets_the_last_hidden_state(tmp_path: Path, open_session: Open) -> None:
    """An assistant that sees only the last state repeats the target's last token."""
    embeddings: list[NDArray[np.float64]] = []

    def target_tensors(tensor: str, data: NDArray[np.float64]) -> NDArray[np.float64]:
        if tensor == "token_embd.weight":
            embeddings.append(data)
        return 0 * data + 1 if tensor == "output_norm.weight" else data

    def assistant_tensors(tensor: str, data: NDArray[np.float64]) -> NDArray[np.float64]:
        if tensor.endswith(("attn_output.weight", "ffn_down.weight")):
            return 0 * data
        if tensor.endswith(("norm.weight", "output_scale.weight")):
            return 0 * data + 1
        if tensor == "nextn.pre_projection.weight":
            return np.eye(192, 256, k=128)
        if tensor == "token_embd.weight":
            return np.pad(embeddings[0], ((0, 0), (0, 64)))
        return data

    pair = write_gemma(tmp_path, target_tensors), write_assistant(tmp_path, assistant_tensors)
    for options in ({}, {"n_seq": 3}):
        session = open_session(*pair, spec_length=1, **ROUNDED, **options)
        for prompt in PROMPTS:
            generation = session.generate(prompt, trace=True, **GREEDY)
            assert generation.stats.drafter_errors == 0
            assert generation.trace is not None
            text = [*prompt, *generation.tokens]
            rounds = generation.trace.rounds[1:]
            assert len(rounds) > 10
            for one in rounds[:-1]:
                assert [t.token for t in one.draft] == [text[len(prompt) + one.position - 1]]


def with_windows_only() -> dict[str, Any]:
    """A Gemma 4 without a layer of full attention."""
    entry = architectures()["gemma4"]
    tensors = {name: shape for name, shape in entry["tensors"].items() if "rope_freqs" not in name}
    ends = {name.split(".", 2)[-1]: shape for name, shape in tensors.items() if ".0,1,2,3" in name}
    for name in tensors:
        if name.startswith("blk.4"):
            tensors[name] = ends[name.split(".", 2)[-1]]
    pattern = {"attention.sliding_window_pattern": [True] * 10}
    return {"values": entry["values"] | pattern, "tensors": tensors}


def test_an_assistant_for_another_architecture_is_refused(tmp_path: Path) -> None:
    assistant = write_assistant(tmp_path)
    other = write(tmp_path / "other.gguf", "gemma2", architectures()["gemma2"])
    wide = ASSISTANT | {"values": ASSISTANT["values"] | {"embedding_length_out": 256}}
    wide |= {
        "tensors": ASSISTANT["tensors"]
        | {"nextn.post_projection.weight": [192, 256], "nextn.pre_projection.weight": [512, 192]}
    }
    long = ASSISTANT | {"values": ASSISTANT["values"] | {"attention.key_length_swa": 64}}
    heads = ASSISTANT | {"values": ASSISTANT["values"] | {"attention.head_count_kv": 1}}
    all_windows = write(tmp_path / "windows.gguf", "gemma4", with_windows_only())
    pairs = [
        (all_windows, assistant, "the last layer of .* should have full attention"),
        (write_gemma(tmp_path), write(tmp_path / "heads.gguf", "gemma4-assistant", heads), "heads"),
        (assistant, None, "an assistant, which drafts for another model"),
        (other, assistant, "a Gemma 4 assistant, but .* is of the architecture"),
        (write_gemma(tmp_path), write(tmp_path / "wide.gguf", "gemma4-assistant", wide), "width"),
        (write_gemma(tmp_path), write(tmp_path / "long.gguf", "gemma4-assistant", long), "length"),
    ]
    assert look(assistant).could_draft_for(look(write_gemma(tmp_path)))
    assert not look(assistant).could_draft_for(look(other))
    for model, draft, message in pairs:
        with pytest.raises(ModelError, match=message):
            SpecSession(model, draft, n_ctx=128)
