"""A small random Llama in float32, for transformers and for llama.cpp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from random_model import EOS, add_words
from rewriting import finish

WIDTH, HEADS, LAYERS, N_VOCAB, N_CTX = 64, 2, 2, 96, 512


def make_float_llama(seed: int) -> Any:
    """Return a `transformers.LlamaForCausalLM` whose distributions are neither flat nor certain."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=N_VOCAB,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=N_CTX,
        rms_norm_eps=1e-5,
        bos_token_id=1,
        eos_token_id=EOS,
        pad_token_id=0,
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config).float().eval()
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if weights.ndim == 2:
                weights.normal_(0, (4 if "embed" in name else 2.5) / weights.shape[1] ** 0.5)
    return model


def write_float_llama(model: Any, path: Path) -> Path:
    """Write the model as a GGUF."""
    weights = {name: one.detach().numpy() for name, one in model.state_dict().items()}
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(N_CTX)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(2 * WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    add_words(writer, N_VOCAB)
    writer.add_tensor("token_embd.weight", weights["model.embed_tokens.weight"])
    writer.add_tensor("output_norm.weight", weights["model.norm.weight"])
    writer.add_tensor("output.weight", weights["lm_head.weight"])
    names = {
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    for layer in range(LAYERS):
        for theirs, ours in names.items():
            tensor = weights[f"model.layers.{layer}.{theirs}.weight"]
            if ours in ("attn_q", "attn_k"):  # llama.cpp rotates neighbours, they rotate halves
                halves = tensor.reshape(HEADS, 2, WIDTH // HEADS // 2, WIDTH)
                tensor = halves.swapaxes(1, 2).reshape(WIDTH, WIDTH)
            writer.add_tensor(f"blk.{layer}.{ours}.weight", np.ascontiguousarray(tensor))
    finish(writer)
    return path
