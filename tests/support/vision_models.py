"""Small random vision models, each in two files: a text model and its multimodal projector.

Gemma 3 reads images of one size and decodes all rows of an image at once (non-causally), each at
its own position. Qwen 2.5-VL reads images of any size; their rows share positions (M-RoPE). Qwen
3.5 is like it, and also has recurrent states and an MTP layer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import gguf
import heads
import numpy as np
from numpy.typing import NDArray
from random_model import HEAD, WIDTH, RandomModel, write_dense
from rewriting import add_value, finish, rewrite

SEEN, HEADS, FFN = 64, 2, 96
"""Width, heads and feed-forward width of the encoders."""

N_LAYERS = 2
PATCH = 8
SIDE = 64
"""Side of a patch in pixels, and of an image for Gemma 3."""


IMAGES = {
    "clip.vision.image_size": SIDE,
    "clip.vision.patch_size": PATCH,
    "clip.vision.image_mean": [0.5, 0.5, 0.5],
    "clip.vision.image_std": [0.5, 0.5, 0.5],
}

AROUND = ("<start_of_image>", "<end_of_image>", "<|vision_start|>", "<|vision_end|>")
"""Texts of the tokens around images."""


Part = str | NDArray[Any]
"""A part of a prompt: a text, the pixels of an image or the samples of a sound."""


class VisionModel(NamedTuple):
    """The files of a vision model."""

    text: Path
    projector: Path


class Encoder:
    """Draws the tensors of an encoder and writes a projector's file."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.tensors: dict[str, NDArray[Any]] = {}

    def matrix(self, *shape: int, scale: float = 1.0) -> NDArray[np.float64]:
        return self.rng.standard_normal(shape) * scale / np.sqrt(shape[-1])

    def layers(self, *, of: str = "v", keys_biased: bool = True, gated: bool = False) -> None:
        for layer in range(N_LAYERS):
            n = f"{of}.blk.{layer}."
            for name in ("ln1", "ln2"):
                self.tensors[f"{n}{name}.weight"] = np.ones(SEEN)
                if not gated:
                    self.tensors[f"{n}{name}.bias"] = np.zeros(SEEN)
            for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
                self.tensors[f"{n}{name}.weight"] = self.matrix(SEEN, SEEN)
                if keys_biased or name != "attn_k":
                    self.tensors[f"{n}{name}.bias"] = self.matrix(SEEN)
            for name in ("ffn_up", "ffn_gate") if gated else ("ffn_up",):
                self.tensors[f"{n}{name}.weight"] = self.matrix(FFN, SEEN)
                self.tensors[f"{n}{name}.bias"] = self.matrix(FFN)
            self.tensors[f"{n}ffn_down.weight"] = self.matrix(SEEN, FFN)
            self.tensors[f"{n}ffn_down.bias"] = self.matrix(SEEN)

    def write(self, path: Path, kind: str, *, of: str = "vision", **more: Any) -> Path:
        writer = gguf.GGUFWriter(path, "clip")
        values = {
            f"clip.has_{of}_encoder": True,
            "clip.projector_type": kind,
            f"clip.{of}.embedding_length": SEEN,
            f"clip.{of}.attention.head_count": HEADS,
            f"clip.{of}.feed_forward_length": FFN,
            f"clip.{of}.block_count": N_LAYERS,
            f"clip.{of}.projection_dim": WIDTH,
            f"clip.{of}.attention.layer_norm_epsilon": 1e-5,
        }
        if of == "vision":
            values |= IMAGES
        for key, value in (values | more).items():
            add_value(writer, key, value)
        for name, tensor in self.tensors.items():
            writer.add_tensor(name, np.ascontiguousarray(tensor, np.float32))
        finish(writer)
        return path


def write_gemma3(folder: Path) -> VisionModel:
    """An image has 16 rows."""
    encoder = Encoder(1)
    encoder.layers()
    encoder.tensors |= {
        "v.patch_embd.weight": encoder.matrix(SEEN, 3, PATCH, PATCH),
        "v.patch_embd.bias": np.zeros(SEEN),
        "v.position_embd.weight": encoder.matrix((SIDE // PATCH) ** 2, SEEN),
        "v.post_ln.weight": np.ones(SEEN),
        "v.post_ln.bias": np.zeros(SEEN),
        "mm.input_projection.weight": encoder.matrix(SEEN, WIDTH, scale=40),
        "mm.soft_emb_norm.weight": np.ones(SEEN),
    }
    values = {"clip.use_gelu": True, "clip.vision.projector.scale_factor": 2}
    return VisionModel(
        _gemma3_text(folder / "gemma3.gguf"),
        encoder.write(folder / "mmproj-gemma3.gguf", "gemma3", **values),
    )


def _gemma3_text(path: Path) -> Path:
    """Five of six layers have sliding windows, which are shorter than an image."""
    model = RandomModel(3)
    for layer in range(6):
        model.attention(layer)
        model.feed_forward(layer)
        n = f"blk.{layer}."
        for name in ("attn_q_norm", "attn_k_norm"):
            model.tensors[f"{n}{name}.weight"] = np.ones(HEAD)
        for name in ("post_attention_norm", "post_ffw_norm"):
            model.tensors[f"{n}{name}.weight"] = np.ones(WIDTH)
    fields = {
        "attention.sliding_window": 32,
        "attention.key_length": HEAD,
        "attention.value_length": HEAD,
    }
    return with_letters(model.write(path, "gemma3", 6, fields))


def write_qwen(folder: Path) -> VisionModel:
    """An image has a row for each 16 x 16 pixels."""
    return VisionModel(_qwen_text(folder / "qwen2vl.gguf"), _qwen_projector(folder))


def write_qwen35(folder: Path) -> VisionModel:
    """It has the same projector."""
    text = with_letters(heads.write_qwen(folder / "qwen35.gguf"))
    return VisionModel(text, _qwen_projector(folder))


def _qwen_projector(folder: Path) -> Path:
    encoder = Encoder(2)
    encoder.layers(gated=True)
    encoder.tensors |= {
        "v.patch_embd.weight": encoder.matrix(SEEN, 3, PATCH, PATCH),
        "v.patch_embd.weight.1": encoder.matrix(SEEN, 3, PATCH, PATCH),
        "v.post_ln.weight": np.ones(SEEN),
        "mm.0.weight": encoder.matrix(4 * SEEN, 4 * SEEN),
        "mm.0.bias": encoder.matrix(4 * SEEN),
        "mm.2.weight": encoder.matrix(WIDTH, 4 * SEEN, scale=8),
        "mm.2.bias": encoder.matrix(WIDTH),
    }
    values = {"clip.use_silu": True, "clip.vision.n_wa_pattern": 2, "clip.vision.window_size": 32}
    return encoder.write(folder / "mmproj-qwen.gguf", "qwen2.5vl_merger", **values)


def _qwen_text(path: Path) -> Path:
    model = RandomModel(4)
    for layer in range(3):
        model.attention(layer)
        model.feed_forward(layer)
        for name in ("attn_q", "attn_k", "attn_v"):
            model.tensors[f"blk.{layer}.{name}.bias"] = model.matrix(WIDTH)
    fields = {"rope.dimension_count": HEAD, "rope.dimension_sections": [16, 24, 24, 0]}
    return with_letters(model.write(path, "qwen2vl", 3, fields))


def with_letters(path: Path) -> Path:
    """Replace the words of the vocabulary by letters, and add the tokens around images. Weights
    become floats, so that rounding matters less."""
    reader = gguf.GGUFReader(path)
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    types = reader.fields["tokenizer.ggml.token_type"].contents()
    n_letters = len(tokens) - 4 - len(AROUND)
    letters = ["\N{LOWER ONE EIGHTH BLOCK}", *(chr(ord("!") + i) for i in range(n_letters - 1))]
    tokens[3:-1] = [*letters, *AROUND]
    types[3 + n_letters : -1] = [gguf.TokenType.CONTROL] * len(AROUND)
    plain = path.with_suffix(".plain")
    path.rename(plain)
    values = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}
    floats = {
        tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type) for tensor in reader.tensors
    }
    rewrite(plain, path, values, floats)
    plain.unlink()
    return path


def write_hearing(folder: Path) -> VisionModel:
    """Write a Llama that hears, like Ultravox: Whisper's encoder gives 375 rows for each 30
    seconds."""
    stacked, n_mel, n_positions, between = 4, 80, 1500, 32
    encoder = Encoder(3)
    encoder.layers(of="a", keys_biased=False)
    encoder.tensors |= {
        "a.conv1d.1.weight": encoder.matrix(SEEN, n_mel, 3),
        "a.conv1d.1.bias": encoder.matrix(SEEN, 1),
        "a.conv1d.2.weight": encoder.matrix(SEEN, SEEN, 3, scale=0.3),
        "a.conv1d.2.bias": encoder.matrix(SEEN, 1),
        "a.position_embd.weight": encoder.matrix(n_positions, SEEN),
        "a.post_ln.weight": np.ones(SEEN),
        "a.post_ln.bias": np.zeros(SEEN),
        "mm.a.norm_pre.weight": np.ones(stacked * SEEN),
        "mm.a.mlp.1.weight": encoder.matrix(2 * between, stacked * SEEN),
        "mm.a.norm_mid.weight": np.ones(between),
        "mm.a.mlp.2.weight": encoder.matrix(WIDTH, between, scale=3),
    }
    values = {"clip.audio.num_mel_bins": n_mel, "clip.audio.projector.stack_factor": stacked}
    projector = folder / "mmproj-ultravox.gguf"
    return VisionModel(
        with_letters(write_dense(folder / "llama.gguf")),
        encoder.write(projector, "ultravox", of="audio", **values),
    )


WRITERS = {"gemma3": write_gemma3, "qwen": write_qwen, "qwen35": write_qwen35}


def picture(seed: int, height: int = 48, width: int = 80) -> NDArray[np.uint8]:
    """Return an image of random squares."""
    rng = np.random.default_rng(seed)
    squares = rng.integers(0, 256, (height // 8, width // 8, 3), np.uint8)
    return np.ascontiguousarray(squares.repeat(8, axis=0).repeat(8, axis=1))


def sound(seed: int, seconds: float = 1.0) -> NDArray[np.float32]:
    """Return a sound of random tones, 16,000 samples a second."""
    rng = np.random.default_rng(seed)
    tones = rng.uniform(200, 3000, 10).repeat(1600)[: int(16000 * seconds)]
    return np.sin(2 * np.pi * np.cumsum(tones) / 16000).astype(np.float32)
