"""Writes tiny real GGUF models that generate a given script.

The model is a Llama whose blocks add nothing. The embedding of token i is the unit vector i, and so
is the output row of the token that follows i. So the greedy next token depends only on the last
one, and llama.cpp computes it as usual.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import gguf
import numpy as np

UNKNOWN, BOS, EOS = 0, 1, 2
FIRST = 3
"""Id of the first piece of a script; the others follow."""


def write_scripted_model(
    path: Path,
    pieces: list[str | bytes],
    *,
    others: Sequence[str | bytes] = (),
    then: int | None = EOS,
    n_ctx: int = 256,
    output_scale: float = 1.0,
    chat_template: str | None = None,
    control: Collection[str] = (),
    any_text: bool = False,
    add_eos: bool = False,
) -> None:
    """Write a model that generates `pieces` one after the other, beginning after BOS.

    Args:
        path: Path of the GGUF.
        pieces: Text of token FIRST, FIRST + 1, and so on (bytes: a token of one raw byte).
        others: Pieces that it never generates; their tokens follow those of `pieces`.
        then: Token after the last piece (None: the first piece again).
        n_ctx: Trained context.
        chat_template: Jinja source (None: no template).
        control: Pieces that are control tokens, whose text is not shown.
        any_text: Whether every byte has a token, so that any prompt can be tokenized.
        add_eos: Whether the file says that texts end with EOS.
        output_scale: Factor of the output matrix; NaN gives NaN logits.
    """
    tokens = ["<unk>", "<s>", "</s>"]
    types = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    seen: set[str] = set()
    for piece in (*pieces, *others):
        if isinstance(piece, bytes):
            text, kind = f"<0x{piece[0]:02X}>", gguf.TokenType.BYTE
        else:
            text, kind = piece.replace(" ", "\N{LOWER ONE EIGHTH BLOCK}"), gguf.TokenType.NORMAL
            if piece in control:
                kind = gguf.TokenType.CONTROL
        if text in seen:  # a token's text must be unique
            raise ValueError(f"piece {piece!r} is twice in the script")
        seen.add(text)
        tokens.append(text)
        types.append(kind)
    # SentencePiece requires a byte token for newline.
    for byte in range(256) if any_text else [0x0A]:
        if (text := f"<0x{byte:02X}>") not in seen:
            tokens.append(text)
            types.append(gguf.TokenType.BYTE)

    n_vocab = len(tokens)
    width = -(-n_vocab // 64) * 64
    last = FIRST + len(pieces) - 1
    successor = {BOS: FIRST, last: FIRST if then is None else then}
    successor |= {token: token + 1 for token in range(FIRST, last)}

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(n_ctx)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(64)
    writer.add_head_count(width // 64)
    writer.add_head_count_kv(width // 64)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(64)
    writer.add_vocab_size(n_vocab)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * n_vocab)
    writer.add_token_types(types)
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_unk_token_id(UNKNOWN)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    if add_eos:
        writer.add_add_eos_token(True)
    if chat_template is not None:
        writer.add_chat_template(chat_template)

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.float32)

    output = zeros(n_vocab, width)
    for token, following in successor.items():
        output[following, token] = output_scale
    writer.add_tensor("token_embd.weight", np.eye(n_vocab, width, dtype=np.float32))
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    writer.add_tensor("output.weight", output)
    writer.add_tensor("blk.0.attn_norm.weight", np.ones(width, np.float32))
    writer.add_tensor("blk.0.ffn_norm.weight", np.ones(width, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        writer.add_tensor(f"blk.0.{name}.weight", zeros(width, width))
    for name in ("ffn_gate", "ffn_up"):
        writer.add_tensor(f"blk.0.{name}.weight", zeros(64, width))
    writer.add_tensor("blk.0.ffn_down.weight", zeros(width, 64))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
