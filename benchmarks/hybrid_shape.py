"""A hybrid model of real size with random weights: the layers of Qwen3.5 0.8B."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

WIDTH, N_INNER, N_LAYERS, ATTENTION_EVERY = 1024, 3584, 24, 4
N_HEADS, N_KV_HEADS, HEAD_SIZE = 8, 2, 256
DELTA_HEADS, DELTA_SIZE, KERNEL = 16, 128, 4
N_VOCAB, EOS = 2048, 2
"""The vocabulary is small, because a real one would only make the file larger."""


def write(path: Path) -> Path:
    """Write a GGUF file with weights in Q8_0."""
    file = gguf.GGUFWriter(path, "qwen35")
    file.add_context_length(32768)
    file.add_embedding_length(WIDTH)
    file.add_block_count(N_LAYERS)
    file.add_feed_forward_length(N_INNER)
    file.add_head_count(N_HEADS)
    file.add_head_count_kv(N_KV_HEADS)
    file.add_key_length(HEAD_SIZE)
    file.add_value_length(HEAD_SIZE)
    file.add_layer_norm_rms_eps(1e-6)
    file.add_rope_dimension_count(64)
    file.add_array("qwen35.rope.dimension_sections", [11, 11, 10, 0])
    file.add_uint32("qwen35.full_attention_interval", ATTENTION_EVERY)
    file.add_ssm_conv_kernel(KERNEL)
    file.add_ssm_inner_size(DELTA_HEADS * DELTA_SIZE)
    file.add_ssm_state_size(DELTA_SIZE)
    file.add_ssm_time_step_rank(DELTA_HEADS)
    file.add_ssm_group_count(DELTA_HEADS)
    _add_words(file)
    rng = np.random.default_rng(1)
    drawn: dict[tuple[int, int], NDArray[np.uint8]] = {}  # the same bytes for the same shape

    def matrix(name: str, n_in: int, n_out: int) -> None:
        if (n_out, n_in) not in drawn:
            values = (rng.standard_normal((n_out, n_in)) / np.sqrt(n_in)).astype(np.float32)
            drawn[n_out, n_in] = gguf.quants.quantize(values, Type.Q8_0)
        file.add_tensor(f"{name}.weight", drawn[n_out, n_in], raw_dtype=Type.Q8_0)

    def numbers(name: str, values: NDArray[np.float64]) -> None:
        file.add_tensor(name, values.astype(np.float32))

    matrix("token_embd", WIDTH, N_VOCAB)
    matrix("output", WIDTH, N_VOCAB)
    numbers("output_norm.weight", np.ones(WIDTH))
    inner = DELTA_HEADS * DELTA_SIZE
    for i in range(N_LAYERS):
        n = f"blk.{i}."
        for norm in ("attn_norm", "post_attention_norm"):
            numbers(f"{n}{norm}.weight", np.ones(WIDTH))
        if (i + 1) % ATTENTION_EVERY == 0:
            matrix(f"{n}attn_q", WIDTH, 2 * N_HEADS * HEAD_SIZE)
            matrix(f"{n}attn_k", WIDTH, N_KV_HEADS * HEAD_SIZE)
            matrix(f"{n}attn_v", WIDTH, N_KV_HEADS * HEAD_SIZE)
            matrix(f"{n}attn_output", N_HEADS * HEAD_SIZE, WIDTH)
            for norm in ("attn_q_norm", "attn_k_norm"):
                numbers(f"{n}{norm}.weight", np.ones(HEAD_SIZE))
        else:
            matrix(f"{n}attn_qkv", WIDTH, 3 * inner)
            matrix(f"{n}attn_gate", WIDTH, inner)
            matrix(f"{n}ssm_beta", WIDTH, DELTA_HEADS)
            matrix(f"{n}ssm_alpha", WIDTH, DELTA_HEADS)
            matrix(f"{n}ssm_out", inner, WIDTH)
            numbers(f"{n}ssm_conv1d.weight", rng.standard_normal((3 * inner, KERNEL)) / KERNEL)
            numbers(f"{n}ssm_dt.bias", rng.standard_normal(DELTA_HEADS))
            numbers(f"{n}ssm_a", -np.abs(rng.standard_normal(DELTA_HEADS)))
            numbers(f"{n}ssm_norm.weight", np.ones(DELTA_SIZE))
        matrix(f"{n}ffn_gate", WIDTH, N_INNER)
        matrix(f"{n}ffn_up", WIDTH, N_INNER)
        matrix(f"{n}ffn_down", N_INNER, WIDTH)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    return path


def _add_words(file: gguf.GGUFWriter) -> None:
    file.add_tokenizer_model("llama")
    words = [f"\N{LOWER ONE EIGHTH BLOCK}w{i}" for i in range(N_VOCAB - 4)]
    file.add_token_list(["<unk>", "<s>", "</s>", *words, "<0x0A>"])
    file.add_token_scores([0.0] * N_VOCAB)
    file.add_token_types([2, 3, 3, *([1] * (N_VOCAB - 4)), 6])
    file.add_bos_token_id(1)
    file.add_eos_token_id(EOS)
