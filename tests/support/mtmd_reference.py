"""Answers to prompts with images by llama-cpp-python's own use of libmtmd: its helper splits,
encodes and decodes text and images, and the most likely token is taken."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llama_cpp
import numpy as np
from llama_cpp import mtmd_cpp
from numpy.typing import NDArray
from random_model import EOS
from vision_models import Part, VisionModel


class MtmdReference:
    """A vision model, for use in a `with` statement."""

    def __init__(self, model: VisionModel, n_ctx: int = 4096) -> None:
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(str(model.text).encode(), params)
        of_media = mtmd_cpp.mtmd_context_params_default()
        of_media.use_gpu = False
        of_media.n_threads = 1
        of_media.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        of_media.print_timings = False
        path = str(model.projector).encode()
        self._media = mtmd_cpp.mtmd_init_from_file(path, self._model, of_media)
        assert self._media is not None
        self._n_ctx = n_ctx

    def __enter__(self) -> MtmdReference:
        return self

    def __exit__(self, *error: object) -> None:
        mtmd_cpp.mtmd_free(self._media)
        llama_cpp.llama_model_free(self._model)

    def answer(self, parts: Sequence[Part], n: int) -> list[int]:
        """Return the n most likely tokens after texts and images, never the end token."""
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = self._n_ctx
        params.n_batch = params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = 1
        params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.type_k = params.type_v = llama_cpp.GGML_TYPE_F32
        context = llama_cpp.llama_init_from_model(self._model, params)
        assert context is not None
        try:
            return self._continued(context, self._read(context, parts), n)
        finally:
            llama_cpp.llama_free(context)

    def _read(self, context: llama_cpp.llama_context_p, parts: Sequence[Part]) -> int:
        """Decode the prompt; return the position after it."""
        marker = mtmd_cpp.mtmd_default_marker().decode()
        text = "".join(part if isinstance(part, str) else marker for part in parts).encode()
        images = [part for part in parts if not isinstance(part, str)]
        bitmaps = [_bitmap(one) for one in images]
        chunks = mtmd_cpp.mtmd_input_chunks_init()
        given = mtmd_cpp.mtmd_input_text()
        given.text, given.add_special, given.parse_special = text, True, True
        given.text_len = len(text)
        pointers = (mtmd_cpp.mtmd_bitmap_p_ctypes * len(bitmaps))(*bitmaps)
        code = mtmd_cpp.mtmd_tokenize(
            self._media, chunks, ctypes.byref(given), pointers, len(bitmaps)
        )
        assert code == 0
        end = llama_cpp.llama_pos(0)
        code = mtmd_cpp.mtmd_helper_eval_chunks(
            self._media, context, chunks, 0, 0, 512, True, ctypes.byref(end)
        )
        assert code == 0
        mtmd_cpp.mtmd_input_chunks_free(chunks)
        for bitmap in bitmaps:
            mtmd_cpp.mtmd_bitmap_free(bitmap)
        return end.value

    def _continued(self, context: llama_cpp.llama_context_p, end: int, n: int) -> list[int]:
        n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))
        tokens: list[int] = []
        while True:
            logits = llama_cpp.llama_get_logits_ith(context, -1)
            row = np.ctypeslib.as_array(logits, (n_vocab,)).copy()
            row[EOS] = -np.inf
            tokens.append(int(row.argmax()))
            if len(tokens) == n:
                return tokens
            batch = llama_cpp.llama_batch_init(1, 0, 1)
            batch.n_tokens = 1
            batch.token[0], batch.pos[0] = tokens[-1], end + len(tokens) - 1
            batch.n_seq_id[0], batch.seq_id[0][0], batch.logits[0] = 1, 0, True
            assert llama_cpp.llama_decode(context, batch) == 0
            llama_cpp.llama_batch_free(batch)


def _bitmap(part: NDArray[Any]) -> mtmd_cpp.mtmd_bitmap_p:
    if part.ndim == 1:
        samples = part.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        bitmap = mtmd_cpp.mtmd_bitmap_init_from_audio(len(part), samples)
    else:
        pixels = part.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        bitmap = mtmd_cpp.mtmd_bitmap_init(part.shape[1], part.shape[0], pixels)
    assert bitmap is not None
    return bitmap
