"""Images and sounds in `specllama chat`."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import soundfile
from PIL import Image
from seeing import open_seeing
from specllama.__main__ import main
from vision_models import VisionModel, picture, sound, write_hearing, write_qwen

TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
Chat = Callable[..., tuple[int, str, str]]


@pytest.fixture
def chat(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Chat:
    """Runs the command in this process, with lines as its input; returns its exit code and its
    output."""
    template = tmp_path / "template"
    template.write_text(TEMPLATE)

    def run(model: VisionModel, *arguments: str | Path, lines: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode()), "utf-8"))
        given = ["-m", model.text, "-mm", model.projector, "--chat-template-file", template]
        same = ["-t", "1", "-ngl", "0", "-c", "1024", "--kv-type", "f32", "--flash-attn", "off"]
        end = ["--draft", "none", "--ignore-eos", "-n", "12"]
        code = main(["chat", *map(str, [*given, *same, *end, *arguments])])
        return (code, *capfd.readouterr())

    return run


def answer(model: VisionModel, *content: dict[str, Any]) -> str:
    with open_seeing(model, chat_template=TEMPLATE) as session:
        messages = [{"role": "user", "content": list(content)}]
        return session.chat(messages, max_tokens=12, ignore_eos=True).text


def test_an_image_of_an_option_and_of_a_command_is_the_same_and_is_saved(
    chat: Chat, tmp_path: Path
) -> None:
    model = write_qwen(tmp_path)
    path, kept = tmp_path / "image.png", tmp_path / "kept.json"
    Image.fromarray(picture(1)).save(path)
    expected = answer(
        model, {"type": "image", "image": path}, {"type": "text", "text": "What is it?"}
    )
    code, out, _ = chat(model, "--image", path, "-p", "What is it?")
    assert (code, out) == (0, f"{expected}\n")
    code, out, err = chat(model, lines=f"/image {path}\nWhat is it?\n/save {kept}\n")
    assert (code, out) == (0, f"{expected}\n")
    assert f"Attached to the next message: {path}" in err
    assert json.loads(kept.read_text())[0]["content"][0]["type"] == "image_url"
    code, out, _ = chat(model, lines=f"/load {kept}\n/regen\n")
    assert (code, out) == (0, f"{expected}\n")


def test_a_sound_is_answered_and_saved(chat: Chat, tmp_path: Path) -> None:
    model = write_hearing(tmp_path)
    path, kept = tmp_path / "sound.mp3", tmp_path / "kept.json"
    soundfile.write(path, sound(1), 16_000, format="MP3")
    expected = answer(
        model, {"type": "audio", "audio": path}, {"type": "text", "text": "What is said?"}
    )
    code, out, _ = chat(model, "--audio", path, "-p", "What is said?")
    assert (code, out) == (0, f"{expected}\n")
    code, out, _ = chat(model, lines=f"/audio {path}\nWhat is said?\n/save {kept}\n")
    assert (code, out) == (0, f"{expected}\n")
    assert json.loads(kept.read_text())[0]["content"][0]["type"] == "input_audio"
    code, out, _ = chat(model, lines=f"/load {kept}\n/regen\n")
    assert (code, out) == (0, f"{expected}\n")


def test_what_the_model_does_not_take_is_refused(chat: Chat, tmp_path: Path) -> None:
    model = write_qwen(tmp_path)
    text, wav = tmp_path / "a.txt", tmp_path / "a.wav"
    text.write_text("Hello")
    soundfile.write(wav, sound(1), 16_000)
    for path, said in (
        (text, "is not a PNG, JPEG, WebP, GIF or BMP"),
        (wav, "the model does not accept sounds"),
    ):
        code, out, err = chat(model, "--image", path, "-p", "What is it?")
        assert (code, out) == (2, "")
        assert said in err
    code, out, err = chat(model, lines=f"/image {tmp_path / 'no.png'}\n")
    assert (code, out) == (2, "")
    assert "no.png cannot be read" in err
