"""Files that are not models, and bad options: one sentence each, and no crash."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import refusals
from rewriting import add_value, rewrite
from scripted_model import BOS, write_scripted_model
from specllama import ArgumentError, OutOfMemoryError, SpecSession

Open = Callable[..., SpecSession]


def refusal(path: Path | str) -> str:
    """Return the sentence that refuses a file; it names the file."""
    message = refusals.refusal(path)
    assert str(path) in message
    return message


def test_a_missing_model_file_is_refused(tmp_path: Path) -> None:
    assert "There is no file" in refusal(tmp_path / "missing.gguf")
    (loop := tmp_path / "loop.gguf").symlink_to(loop)
    assert "as a model: Too many levels of symbolic links." in refusal(loop)


def test_a_directory_is_refused_as_a_model(tmp_path: Path) -> None:
    assert "is a directory" in refusal(tmp_path)


def test_an_empty_file_is_refused_as_a_model(tmp_path: Path) -> None:
    (path := tmp_path / "empty.gguf").touch()
    assert "it is empty" in refusal(path)


def test_a_text_file_is_refused_as_a_model(tmp_path: Path) -> None:
    (path := tmp_path / "text.gguf").write_text("Once upon a time")
    assert "not a GGUF file" in refusal(path)


def test_invalid_model_paths_are_refused() -> None:
    for path, message in (("", "model is empty"), ("a\0b", "a NUL character")):
        with pytest.raises(ArgumentError, match=message):
            SpecSession(path)
    with pytest.raises(ArgumentError, match="model must be a path"):
        SpecSession(5)  # type: ignore[arg-type]


def test_a_truncated_model_file_is_refused(tmp_path: Path, bundled_model: Path) -> None:
    whole = bundled_model.read_bytes()
    for i in range(10):
        # Positions in the header and in the weights.
        end = [5, 30, 1000, 50_000, 90_000, 200_000][i] if i < 6 else len(whole) * (i - 5) // 5
        (path := tmp_path / f"cut{i}.gguf").write_bytes(whole[: min(end, len(whole) - 1)])
        message = refusal(path)
        assert "cut short" in message or "damaged" in message


def test_a_vocabulary_without_weights_is_refused(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(path := tmp_path / "vocab.gguf", "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<unk>", "<s>", "</s>"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert "has a vocabulary but no weights" in refusal(path)


def write_header(path: Path, architecture: str | None, **values: Any) -> None:
    """Write a GGUF with one tensor and these values: an int, a bool, a text or a list each."""
    writer = gguf.GGUFWriter(path, architecture or "llama")
    if architecture is None:
        writer.kv_data[0].clear()
    for name, value in values.items():
        add_value(writer, name.replace("__", "."), value)
    writer.add_tensor("token_embd.weight", np.zeros((3, 64), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


LLAMA: dict[str, Any] = {
    "llama__block_count": 1,
    "llama__context_length": 64,
    "llama__embedding_length": 64,
    "llama__attention__head_count": 1,
    "tokenizer__ggml__model": "llama",
    "tokenizer__ggml__tokens": ["<unk>", "<s>", "</s>"],
}


@pytest.mark.parametrize("architecture", ["bert", "nomic-bert", "t5", "t5encoder"])
def test_encoder_models_are_refused(tmp_path: Path, architecture: str) -> None:
    write_header(path := tmp_path / "encoder.gguf", architecture, **LLAMA)
    assert "does not generate text token by token" in refusal(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"llama__attention__causal": False}, "embedding model"),
        ({"split__no": 1}, "part 2 of a split model"),
        ({"llama__block_count": 0}, "llama.block_count is 0"),
        ({"llama__context_length": None}, "its llama.context_length is missing"),
        ({"llama__attention__head_count": 3, "llama__attention__head_count_kv": 2}, "multiple"),
        ({"llama__attention__head_count": None}, "head_count is missing or 0"),
        ({"llama__attention__head_count": [0]}, "head_count is missing or 0"),
        ({"llama__attention__head_count": "1"}, "head_count is not an array"),
        ({"llama__attention__head_count_kv": [70000]}, "head_count_kv is 70000"),
        ({"tokenizer__ggml__model": None}, "no tokenizer"),
        ({"tokenizer__ggml__tokens": None}, "no tokens"),
        ({"tokenizer__ggml__tokens": [1, 2, 3]}, "is an array of"),
        ({"tokenizer__ggml__tokens": "abc"}, "is not an array"),
        ({"tokenizer__ggml__tokens": ["a", "b", "a"]}, "token 2 has the same text"),
        ({"tokenizer__ggml__scores": [0.5]}, "only 1 entries in tokenizer.ggml.scores"),
        ({"tokenizer__ggml__bos_token_id": 7}, "bos_token_id is 7, but it has 3 tokens"),
        ({"general__architecture": "no-such"}, "unknown model architecture: 'no-such'"),
    ],
)
def test_bad_gguf_headers_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    values = {name: value for name, value in (LLAMA | change).items() if value is not None}
    architecture = values.pop("general__architecture", "llama")
    if architecture != "llama":
        values = {name.replace("llama__", f"{architecture}__"): v for name, v in values.items()}
    write_header(path := tmp_path / "header.gguf", architecture, **values)
    assert message in refusal(path)


def test_a_model_with_an_empty_tensor_is_refused(tmp_path: Path) -> None:
    """It is refused before its kernel is looked up."""
    write_header(path := tmp_path / "model.gguf", "llama", **LLAMA)
    data = bytearray(path.read_bytes())
    sizes = data.index(b"token_embd.weight") + len(b"token_embd.weight") + 4
    assert data[sizes : sizes + 16] == (64).to_bytes(8, "little") + (3).to_bytes(8, "little")
    for at in (sizes, sizes + 8):
        empty = bytearray(data)
        empty[at : at + 8] = bytes(8)
        path.write_bytes(empty)
        assert "its tensor token_embd.weight is empty" in refusal(path)


def test_a_model_with_missing_tensors_is_refused(tmp_path: Path) -> None:
    write_header(
        path := tmp_path / "tensors.gguf",
        "llama",
        llama__feed_forward_length=64,
        **(LLAMA | {"tokenizer__ggml__tokens": ["<unk>", "<s>", "</s>"]}),
    )
    assert "Cannot use" in refusal(path)


TOKENS = ["<unk>", "<s>", "</s>", "a", "b", "c", "<0x0A>"]
LETHAL: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"llama.block_count": 600}, {}),
    ({"llama.nextn_predict_layers": 3}, {}),
    ({"llama.expert_count": 2}, {}),
    ({"llama.expert_count": 2, "llama.expert_used_count": 3}, {}),
    ({"llama.expert_count": 0, "llama.expert_used_count": 3}, {}),
    ({"llama.expert_count": 100_000, "llama.expert_used_count": 3}, {}),
    ({"llama.rope.scaling.type": "bogus"}, {}),
    ({"llama.attention.layer_norm_rms_epsilon": -1.0}, {}),
    ({"llama.attention.layer_norm_rms_epsilon": float("nan")}, {}),
    ({"llama.attention.head_count": 64, "llama.attention.head_count_kv": 64}, {}),
    ({"llama.rope.dimension_count": 63}, {}),
    ({}, {"output.weight": np.zeros((7, 64), np.int32)}),
    ({}, {"blk.0.attn_q.weight": np.zeros((64, 64), np.int8)}),
    ({}, {"blk.0.ffn_up.weight": np.zeros((64, 64), np.float64)}),
    ({}, {"token_embd.weight": np.zeros((7, 64), np.int32)}),
    ({}, {"output_norm.weight": np.ones(64, np.float16)}),
    ({}, {"rope_freqs.weight": np.ones(32, np.float16)}),
    ({"tokenizer.ggml.model": "bert"}, {}),
    ({"tokenizer.ggml.tokens": [*TOKENS[:4], "[EMPTY_5]", "", TOKENS[6]]}, {}),
]


def test_headers_that_would_crash_llama_cpp_are_refused(tmp_path: Path) -> None:
    """Without a check, each would fail an assertion of llama.cpp, or worse. All run in one process,
    so that one crash is seen."""
    write_scripted_model(original := tmp_path / "whole.gguf", ["a", "b", "c"])
    paths = []
    for i, (fields, tensors) in enumerate(LETHAL):
        paths.append(tmp_path / f"lethal{i}.gguf")
        rewrite(original, paths[-1], fields, tensors)
    rewrite(original, sound := tmp_path / "sound.gguf", {}, {})
    script = (
        "import sys\n"
        "from specllama import ModelError, SpecSession\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n"
        "        with SpecSession(path, n_gpu_layers=0, n_threads=1, n_ctx=64) as session:\n"
        "            print('ran', session.generate([1]).text)\n"
        "    except ModelError as error:\n"
        "        print('refused', error)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", script, str(sound), *map(str, paths)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = process.stdout.splitlines()
    assert process.returncode == 0, (LETHAL[len(lines) - 1], process.stderr)
    assert lines[0] == "ran abc"
    for line, case in zip(lines[1:], LETHAL, strict=True):
        assert line.startswith("refused Cannot use"), case


def test_a_named_pipe_is_refused_as_a_model(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "fifo.gguf")
    assert "not a regular file" in refusal(path)


def test_damaged_model_files_never_crash_the_process(tmp_path: Path) -> None:
    """80 files with a few changed bytes, in a child process: each is refused or runs."""
    write_scripted_model(original := tmp_path / "whole.gguf", ["a", "b", "c"])
    script = textwrap.dedent(
        """
        import random, sys
        from pathlib import Path
        from specllama import SpecSession, SpecllamaError
        whole, outcomes = Path(sys.argv[1]).read_bytes(), []
        for seed in range(80):
            rng = random.Random(seed)
            data = bytearray(whole)
            for _ in range(rng.choice([1, 3])):
                data[rng.randrange(4, 1500)] = rng.choice([0, 1, 255, rng.randrange(256)])
            path = Path(sys.argv[1]).with_name("damaged.gguf")
            path.write_bytes(data)
            try:
                with SpecSession(path, n_gpu_layers=0, n_threads=1, n_ctx=64) as session:
                    session.generate([int(sys.argv[2])], max_tokens=4)
                outcomes.append("ran")
            except SpecllamaError as error:
                assert str(error).endswith("."), error
                outcomes.append("refused")
        print(outcomes.count("ran"), outcomes.count("refused"))
        """
    )
    process = subprocess.run(
        [sys.executable, "-c", script, str(original), str(BOS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    n_ran, n_refused = map(int, process.stdout.split())
    assert n_ran + n_refused == 80
    assert n_refused > 10


@pytest.mark.parametrize(
    "name",
    [
        "n_ctx",
        "n_batch",
        "n_threads",
        "n_gpu_layers",
        "spec_length",
        "ngram_order",
        "ngram_window",
        "ngram_max_bytes",
    ],
)
@pytest.mark.parametrize("value", [-2, 2**31, -(2**70), 10**30, 1.5, "4", True, float("nan"), []])
def test_bad_numbers_are_refused_with_the_options_name(
    open_session: Open, name: str, value: Any
) -> None:
    if name == "ngram_max_bytes" and value == 2**31:
        return  # 2 GiB are a valid limit
    with pytest.raises(ArgumentError, match=name) as caught:
        open_session(**{name: value})
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("n_batch", 0, "n_batch must be from 1 to 8192, not 0"),
        ("n_batch", 8193, "n_batch must be from 1 to 8192"),
        ("n_threads", 10_000, "n_threads must be from 0 to"),
        ("spec_length", 0, "spec_length must be from 1 to 64, not 0"),
        ("spec_length", 65, "spec_length must be from 1 to 64"),
        ("ngram_order", 1, "ngram_order must be from 2 to 8"),
        ("ngram_max_bytes", 100, "ngram_max_bytes must be 65536 or more, not 100"),
        ("kv_type", "q9_9", 'kv_type must be one of f32, f16.*, not "q9_9"'),
        ("kv_type", 8, "kv_type must be a str"),
        ("flash_attn", "maybe", "flash_attn must be True, False or"),
        ("flash_attn", [], "flash_attn must be"),
        ("progress", 3, "progress must be"),
    ],
)
def test_bad_session_options_are_refused(
    open_session: Open, option: str, value: Any, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        open_session(**{option: value})


def test_quantised_kv_memory_without_flash_attention_is_refused(open_session: Open) -> None:
    with pytest.raises(ArgumentError, match='kv_type "q8_0" does not fit'):
        open_session(kv_type="q8_0", flash_attn=False)


def test_unknown_options_of_sessions_and_generations_raise_type_error(open_session: Open) -> None:
    with pytest.raises(TypeError, match="temperatur"):
        open_session(temperatur=1)
    with pytest.raises(TypeError, match="max_token"):
        open_session().generate("x", max_token=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("max_tokens", [-2, -100, 2**40, 1.5, "9", True])
def test_bad_max_tokens_are_refused(open_session: Open, max_tokens: Any) -> None:
    with pytest.raises(ArgumentError, match="max_tokens"):
        open_session().generate("x", max_tokens=max_tokens)


def test_a_context_too_large_for_the_memory_is_refused(open_session: Open) -> None:
    with pytest.raises(OutOfMemoryError, match="lower n_ctx"):
        open_session(n_ctx=2**30)
