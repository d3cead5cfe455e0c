"""Images and sounds in prompts of spec-cli, by both programs."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from PIL import Image
from rewriting import rewrite
from seeing import ROUNDING
from specllama import SpecSession
from specllama.commands.spec_cli import executable
from vision_models import VisionModel, picture, sound, write_gemma3, write_hearing, write_qwen

TEMPLATE = "{% for m in messages %}[INST] {{ m.content }} [/INST]{% endfor %}"  # of Llama 2
SCRIPT = "from specllama_light.command import spec_cli; spec_cli()"
PROGRAMS = {"executable": [str(executable())], "console script": [sys.executable, "-c", SCRIPT]}
N = 30


def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    same = ["-t", "1", "-ngl", "0", "--kv-type", "f32", "--flash-attn", "off", "-c", "1024"]
    given = [*PROGRAMS[program], *same, "--draft", "none", "--ignore-eos", "-n", str(N)]
    return subprocess.run(
        [*given, *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def tokens(process: subprocess.CompletedProcess[str]) -> list[int]:
    assert process.returncode == 0, process.stderr
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    return [line["token"] for line in lines if "token" in line]


def with_template(model: VisionModel) -> VisionModel:
    text = model.text.with_name("chat.gguf")
    rewrite(model.text, text, {"tokenizer.chat_template": TEMPLATE}, {})
    return VisionModel(text, model.projector)


@pytest.fixture(scope="module", params=[write_gemma3, write_qwen])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> VisionModel:
    return with_template(request.param(tmp_path_factory.mktemp("models")))


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> VisionModel:
    return with_template(write_qwen(tmp_path_factory.mktemp("models")))


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "1.png", tmp_path / "2.bmp"]
    for i, path in enumerate(paths):
        Image.fromarray(picture(i + 1)).save(path)
    return paths


def answer(model: VisionModel, kind: str, media: list[Any]) -> list[int]:
    """By SpecSession."""
    content = [*({"type": kind, kind: one} for one in media), {"type": "text", "text": "What?"}]
    messages = [{"role": "user", "content": content}]
    with SpecSession(
        model.text, None, mmproj=model.projector, n_ctx=1024, n_gpu_layers=0, **ROUNDING
    ) as session:
        return session.chat(messages, max_tokens=N, ignore_eos=True).tokens


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_answer_to_images_is_that_of_a_session(
    program: str, model: VisionModel, images: list[Path]
) -> None:
    given = [part for path in images for part in ("--image", path)]
    prompt = ["-m", model.text, "-mm", model.projector, "-p", "What?"]
    found = tokens(run(program, *prompt, *given, "--json"))
    assert len(found) == N
    assert found == answer(model, "image", images)
    assert found != tokens(run(program, *prompt, *given[:2], "--json"))


def test_the_console_script_takes_the_projector_next_to_the_model(
    qwen: VisionModel, images: list[Path]
) -> None:
    model = qwen
    beside = model.text.with_name(f"{model.projector.stem.removeprefix('mmproj-')}-chat.gguf")
    beside.write_bytes(model.text.read_bytes())
    prompt = ["-m", beside, "-p", "What?", "--image", images[0], "--json"]
    named = tokens(run("console script", *prompt, "-mm", model.projector))
    assert tokens(run("console script", *prompt)) == named
    beside.unlink()


def test_a_sound_is_answered_by_the_console_script(tmp_path: Path) -> None:
    model = with_template(write_hearing(tmp_path))
    path = tmp_path / "sound.flac"
    soundfile.write(path, sound(1), 16_000)
    prompt = ["-m", model.text, "-mm", model.projector, "-p", "What?"]
    found = tokens(run("console script", *prompt, "--audio", path, "--json"))
    assert found == answer(model, "audio", [path])
    process = run("executable", *prompt, "--audio", path)
    assert process.returncode == 2
    assert "is not a PNG, JPEG, GIF or BMP file" in process.stderr


def png_header(width: int, height: int) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    return (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    )


def jpeg_header(width: int, height: int) -> bytes:
    frame = struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\1\x11\0\2\x11\0\3\x11\0"
    return b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xc0" + frame


BAD = {
    "a text": (b"Hello", "is not a PNG, JPEG, GIF or BMP file; convert it."),
    "an empty file": (b"", "is not a PNG, JPEG, GIF or BMP file; convert it."),
    "a large PNG": (png_header(60_000, 60_000), "has 60000 x 60000 pixels, more than 50000000"),
    "a long PNG": (png_header(1, 60_000), "one side more than 200 times the other; crop it."),
    "a large JPEG": (jpeg_header(65_000, 65_000), "has 65000 x 65000 pixels, more than"),
    "a large GIF": (b"GIF89a" + struct.pack("<HH", 65_000, 65_000), "has 65000 x 65000 pixels"),
    "a large BMP": (
        b"BM" + bytes(12) + struct.pack("<Iii", 40, 60_000, -60_000), "has 60000 x 60000 pixels",
    ),
    "a damaged PNG": (png_header(8, 8), "is a damaged image file; save it anew."),
    "a PNG of Apple's": (png_header(8, 8)[:8] + b"\0\0\0\4CgBI" + bytes(8), "is not a PNG"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_image_is_refused_with_one_sentence(
    name: str, qwen: VisionModel, tmp_path: Path
) -> None:
    data, said = BAD[name]
    path = tmp_path / "image"
    path.write_bytes(data)
    process = run(
        "executable", "-m", qwen.text, "-mm", qwen.projector, "-p", "What?", "--image", path
    )
    assert process.returncode == 2
    assert process.stdout == ""
    assert process.stderr.startswith(f"spec-cli: {path} ")
    assert said in process.stderr
    assert process.stderr.count("\n") == 1


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--image needs the model's projector; give it with -mm."),
        (
            ["-mm", "{projector}", "--raw"],
            "--image needs the chat template, which -no-cnv turns off; leave out one of them.",
        ),
        (["-mm", "{projector}", "--image", "no.png"], "There is no image file no.png."),
    ],
)
def test_images_that_cannot_be_used_are_refused(
    program: str,
    options: list[str],
    said: str,
    images: list[Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    model = with_template(write_qwen(tmp_path_factory.mktemp("alone")))
    hidden = model.projector.rename(model.projector.with_suffix(".elsewhere"))
    given = [one.format(projector=hidden) for one in options]
    process = run(program, "-m", model.text, "-p", "What?", "--image", images[0], *given)
    assert process.returncode == 2
    assert process.stderr == f"spec-cli: {said}\n"


def test_jpeg_and_gif_files_are_read(qwen: VisionModel, tmp_path: Path) -> None:
    flat: NDArray[np.uint8] = np.full((48, 80, 3), 200, np.uint8)
    flat[:, :40] = 30
    prompt = ["-m", qwen.text, "-mm", qwen.projector, "-p", "What?", "--json"]
    answers = []
    for name in ("a.jpg", "a.gif", "a.png"):
        Image.fromarray(flat).save(tmp_path / name)
        answers.append(tokens(run("executable", *prompt, "--image", tmp_path / name)))
    assert answers[1] == answers[2]
    assert len(answers[0]) == N
