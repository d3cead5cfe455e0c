"""The cost of an image: a text model of Gemma 3 with a projector of real size and random weights.

    python benchmarks/bench_images.py gemma-3-270m.gguf [-t 2] [--repeat 3] [-n 64] [--kv-type f16]

The projector has the shape of Gemma 3's encoder (SigLIP So400m/14: 27 layers of 1152, images of
896 x 896 pixels, 256 tokens each) and F16 weights. Its weights are random, so the answers are
meaningless, but all times are those of a real one. It prints medians of the repeats: seconds until
the first token of a prompt with as many text tokens, with an image, and with the same image again
with other text after or before it; then tokens per second of the answers, plain and with drafts,
and whether their tokens agree. They agree with Q8_0 weights and --kv-type q8_0, because decodes of
every width then give the same bits. With other types they may differ at near-ties: a random
projector magnifies rounding.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray
from specllama import SpecSession

WIDTH, N_LAYERS, N_HEADS, FFN = 1152, 27, 16, 4304
SIDE, PATCH, SCALE = 896, 14, 4
N_ROWS = (SIDE // PATCH // SCALE) ** 2
MARKER = "<__media__>"


def write_projector(path: Path, text_width: int) -> Path:
    """Write a random projector for a text model with embeddings of size `text_width`."""
    rng = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "gemma3")
    writer.add_bool("clip.use_gelu", True)
    numbers = {
        "image_size": SIDE, "patch_size": PATCH, "embedding_length": WIDTH,
        "attention.head_count": N_HEADS, "feed_forward_length": FFN, "block_count": N_LAYERS,
        "projection_dim": text_width, "projector.scale_factor": SCALE,
    }  # fmt: skip
    for name, number in numbers.items():
        writer.add_uint32(f"clip.vision.{name}", number)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-6)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])

    def matrix(name: str, *shape: int) -> None:
        values = rng.standard_normal(shape, np.float32) / np.sqrt(shape[-1])
        writer.add_tensor(f"{name}.weight", values.astype(np.float16))

    def vector(name: str, n: int, value: float = 0.0) -> None:
        writer.add_tensor(name, np.full(n, value, np.float32))

    matrix("v.patch_embd", WIDTH, 3, PATCH, PATCH)
    vector("v.patch_embd.bias", WIDTH)
    positions = rng.standard_normal(((SIDE // PATCH) ** 2, WIDTH), np.float32)
    writer.add_tensor("v.position_embd.weight", positions)
    for layer in range(N_LAYERS):
        n = f"v.blk.{layer}."
        for norm in ("ln1", "ln2"):
            vector(f"{n}{norm}.weight", WIDTH, 1.0)
            vector(f"{n}{norm}.bias", WIDTH)
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            matrix(n + name, WIDTH, WIDTH)
            vector(f"{n}{name}.bias", WIDTH)
        matrix(f"{n}ffn_up", FFN, WIDTH)
        vector(f"{n}ffn_up.bias", FFN)
        matrix(f"{n}ffn_down", WIDTH, FFN)
        vector(f"{n}ffn_down.bias", WIDTH)
    vector("v.post_ln.weight", WIDTH, 1.0)
    vector("v.post_ln.bias", WIDTH)
    matrix("mm.input_projection", WIDTH, text_width)
    vector("mm.soft_emb_norm.weight", WIDTH, 1.0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def picture(seed: int) -> NDArray[np.uint8]:
    """Return an image of random squares."""
    squares = np.random.default_rng(seed).integers(0, 256, (28, 28, 3), np.uint8)
    return np.ascontiguousarray(squares.repeat(32, axis=0).repeat(32, axis=1))


def text_width(model: str) -> int:
    """Return the size of a model's embeddings."""
    field = gguf.GGUFReader(model).fields["gemma3.embedding_length"]
    return int(field.contents())


def first_tokens(session: SpecSession, repeat: int) -> dict[str, float]:
    """Return the median seconds of prompts, by their content."""
    found: dict[str, list[float]] = {}
    text = "A word and a word. " * (N_ROWS // 6)
    for i in range(repeat):
        prompts = {
            "text of as many tokens": (f"{i}: {text}", []),
            "an image": (f"{i}: {MARKER} Describe it.", [picture(i)]),
            "the same image, other text after it": (f"{i}: {MARKER} Name it.", [picture(i)]),
            "the same image, other text before it": (f"No. {i}: {MARKER} Name it.", [picture(i)]),
        }
        for name, (prompt, media) in prompts.items():
            stats = session.generate(prompt, media=media, max_tokens=1).stats
            found.setdefault(name, []).append(stats.seconds.prefill)
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="GGUF file of a text model of Gemma 3")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("-n", type=int, default=64, help="tokens of an answer (default: 64)")
    parser.add_argument("--kv-type", default="f16", help="type of the KV memory (default: f16)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        projector = write_projector(Path(folder) / "mmproj.gguf", text_width(given.model))
        options = {
            "mmproj": projector, "n_threads": given.threads, "n_ctx": 4096,
            "kv_type": given.kv_type, "flash_attn": True,
        }  # fmt: skip
        with SpecSession(given.model, "ngram", **options) as session:
            print(f"projector: {projector.stat().st_size / 1e6:.0f} MB, {N_ROWS} tokens an image")
            for name, seconds in first_tokens(session, given.repeat).items():
                print(f"{name:40}{seconds:8.2f} s")
            prompt = f"{MARKER} one two three four one two three four one two three"
            speeds: dict[str, list[float]] = {"plain": [], "drafts": []}
            tokens = []
            for i in range(given.repeat):
                for name, length in (("plain", 0), ("drafts", None)):
                    how = {} if length is None else {"spec_length": length}
                    result = session.generate(
                        prompt, media=[picture(i)], max_tokens=given.n, ignore_eos=True, **how
                    )
                    speeds[name].append(result.stats.tokens_per_second)
                    tokens.append((i, result.tokens))
            for name, rates in speeds.items():
                print(f"{name:40}{statistics.median(rates):8.1f} tokens/s")
            pairs = zip(tokens[::2], tokens[1::2], strict=True)
            print("same tokens:", all(a == b for a, b in pairs))


if __name__ == "__main__":
    main()
