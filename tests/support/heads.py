"""Writes GGUF files with heads: EAGLE-3, and MTP layers (multi-token prediction)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from random_model import FFN, HEAD, N_VOCAB, QWEN35, WIDTH, RandomModel, delta_net_model
from scripted_model import write_scripted_model

MTP = {"nextn_predict_layers": 1}


def eagle3_model(*, seed: int = 11) -> RandomModel:
    """Return an EAGLE-3 head for the random models."""
    model = RandomModel(seed)
    model.tensors["fc.weight"] = model.matrix(WIDTH, 3 * WIDTH)
    model.attention(0)
    model.feed_forward(0)
    model.tensors["blk.0.attn_norm_2.weight"] = np.ones(WIDTH)
    for name in ("attn_q", "attn_k", "attn_v"):
        model.tensors[f"blk.0.{name}.weight"] = model.matrix(WIDTH, 2 * WIDTH)
    return model


def few_tokens(model: RandomModel) -> None:
    """Reduce a head's vocabulary to every third token."""
    known = np.arange(3, N_VOCAB, 3)
    model.tensors["d2t"] = known.astype(np.int64)
    model.tensors["output.weight"] = model.matrix(len(known), WIDTH)


def write_eagle3(path: Path, model: RandomModel | None = None, **fields: Any) -> Path:
    facts = {
        "rope.dimension_count": HEAD,
        "target_layers": [0, 1, 1],
        "target_hidden_size": WIDTH,
    }
    return (model or eagle3_model()).write(path, "eagle3", 1, facts | fields)


def glm_model(n_layers: int = 2) -> RandomModel:
    """Return a GLM 4.5: attention with a network, attention with experts, and MTP."""
    model = RandomModel(8)
    for layer in range(n_layers + 1):
        n = f"blk.{layer}."
        model.attention(layer)
        model.tensors[n + "post_attention_norm.weight"] = np.ones(WIDTH)
        if layer == 0:
            model.feed_forward(layer)
            del model.tensors[n + "ffn_norm.weight"]
            continue
        model.experts(layer)
        model.tensors[n + "exp_probs_b.bias"] = np.zeros(4)
        model.tensors[n + "ffn_gate_shexp.weight"] = model.matrix(FFN, WIDTH)
        model.tensors[n + "ffn_up_shexp.weight"] = model.matrix(FFN, WIDTH)
        model.tensors[n + "ffn_down_shexp.weight"] = model.matrix(WIDTH, FFN)
    model.prediction(n_layers)
    return model


GLM = MTP | {
    "rope.dimension_count": HEAD,
    "expert_count": 4,
    "expert_used_count": 2,
    "expert_feed_forward_length": FFN,
    "expert_shared_count": 1,
    "leading_dense_block_count": 1,
}


def write_glm(
    path: Path, model: RandomModel | None = None, n_layers: int = 2, **fields: Any
) -> Path:
    model = model or glm_model(n_layers)
    return model.write(path, "glm4moe", n_layers + 1, GLM | fields)


def write_qwen(
    path: Path, model: RandomModel | None = None, n_layers: int = 2, **fields: Any
) -> Path:
    model = model or delta_net_model(n_predicting=1, n_layers=n_layers)
    return model.write(path, "qwen35", n_layers + 1, QWEN35 | MTP | fields)


def depend_on_last_token(model: RandomModel) -> None:
    """Make the next token depend only on the last one, in the target and in its MTP layer."""
    for name, tensor in model.tensors.items():
        if name.endswith(("attn_output.weight", "ssm_out.weight")) or ".ffn_down" in name:
            tensor[...] = 0
        if name.endswith("nextn.eh_proj.weight"):
            tensor[...] = np.concatenate([np.eye(WIDTH), np.zeros((WIDTH, WIDTH))], axis=1)


def write_perfect_pair(folder: Path, *, shares: bool) -> tuple[Path, Path]:
    """Write a model that counts in a cycle, and an EAGLE-3 head that predicts all of it.

    The input of the target's layer is the unit vector of a token. The head's state is that of the
    token before the last one: its network maps a token's vector to the next one's, and its output
    layer is the target's. So a draft is right only if states and tokens are in step, and if the
    head continues from its own states.

    Args:
        folder: Folder to write to.
        shares: Whether the head has no embeddings and no output layer of its own.
    """
    folder.mkdir(exist_ok=True)
    target, head = folder / "target.gguf", folder / "head.gguf"
    write_scripted_model(target, [f"{i} " for i in range(10, 40)], then=None, n_ctx=1024)
    reader = gguf.GGUFReader(target)
    tensors = {tensor.name: np.array(tensor.data) for tensor in reader.tensors}
    n_vocab, width = tensors["token_embd.weight"].shape
    step = tensors["output.weight"]  # [next, token]
    advance = np.zeros((width, width), np.float32)
    advance[:n_vocab] = step
    live = np.diag(step.sum(axis=0))  # tokens with a next token

    writer = gguf.GGUFWriter(head, "eagle3")
    for field in reader.fields.values():
        name = field.name.replace("llama.", "eagle3.")
        if not name.startswith("GGUF.") and name != "general.architecture":
            kind = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], kind)
    writer.add_array("eagle3.target_layers", [0, 0, 0])
    writer.add_uint32("eagle3.target_hidden_size", width)
    ones, square = np.ones(width, np.float32), np.zeros((width, 2 * width), np.float32)
    made = {
        "fc.weight": np.concatenate([np.eye(width), np.zeros((width, 2 * width))], axis=1),
        "output_norm.weight": ones,
        "blk.0.attn_norm.weight": ones,
        "blk.0.attn_norm_2.weight": ones,
        "blk.0.attn_q.weight": square,
        "blk.0.attn_k.weight": square,
        "blk.0.attn_v.weight": square,
        "blk.0.attn_output.weight": np.zeros((width, width)),
        "blk.0.ffn_norm.weight": ones,
        # The norm scales a unit vector to length sqrt(width), which silu leaves unchanged.
        "blk.0.ffn_gate.weight": np.eye(width),
        "blk.0.ffn_up.weight": np.eye(width),
        "blk.0.ffn_down.weight": (advance - live) / width,
    }
    if not shares:
        made |= {name: tensors[name] for name in ("token_embd.weight", "output.weight")}
    for name, tensor in made.items():
        writer.add_tensor(name, np.ascontiguousarray(tensor, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target, head
