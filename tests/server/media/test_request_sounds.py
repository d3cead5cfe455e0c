"""Sounds in requests, to a server whose model hears."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from seeing import open_seeing
from serving import Server, refused, serve
from vision_models import sound, write_hearing

TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
TEXT = {"type": "text", "text": "What is said?"}


@pytest.fixture(scope="module")
def hearing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    model = write_hearing(tmp_path_factory.mktemp("models"))
    with (
        open_seeing(model, "ngram", chat_template=TEMPLATE, n_ctx=2048, spec_length=3) as session,
        serve(session) as running,
    ):
        yield running


def file(kind: str, samples: NDArray[np.float32]) -> bytes:
    held = io.BytesIO()
    soundfile.write(held, samples, 16_000, format=kind)
    return held.getvalue()


def body(data: bytes) -> dict[str, Any]:
    held = {"data": base64.b64encode(data).decode(), "format": "wav"}
    content = [{"type": "input_audio", "input_audio": held}, TEXT]
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 8, "temperature": 0}


@pytest.mark.parametrize("kind", ["WAV", "MP3", "FLAC"])
def test_a_sound_is_answered_as_by_a_session(hearing: Server, kind: str) -> None:
    data = file(kind, sound(1))
    answer = hearing.post("/v1/chat/completions", body(data)).json()
    messages = [{"role": "user", "content": [{"type": "audio", "audio": data}, TEXT]}]
    expected = hearing.session.chat(messages, max_tokens=8)
    assert answer["choices"][0]["message"]["content"] == expected.text
    assert answer["usage"]["prompt_tokens"] == expected.stats.prompt_tokens > 375


def test_a_sound_of_more_than_a_mebibyte_is_taken(hearing: Server) -> None:
    data = file("WAV", np.tile(sound(1), 60)[: 16_000 * 40])
    assert len(data) > 1 << 20
    answer = hearing.post("/v1/chat/completions", body(data)).json()
    assert answer["usage"]["prompt_tokens"] > 2 * 375


def test_a_long_sound_in_a_small_file_is_refused(hearing: Server) -> None:
    data = file("FLAC", np.zeros(16_000 * 700, np.float32))
    answer = hearing.post("/v1/chat/completions", body(data))
    error = refused(answer, 400, "messages[0].content[0].input_audio.data")
    assert "longer than 600 seconds" in error["message"]


def test_an_image_is_refused_by_a_model_that_only_hears(hearing: Server) -> None:
    content = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, TEXT]
    answer = hearing.post(
        "/v1/chat/completions", {"messages": [{"role": "user", "content": content}]}
    )
    refused(answer, 400, "messages[0].content[0].image_url")
