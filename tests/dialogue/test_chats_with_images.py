"""Images in conversations and in texts, by Python."""

from __future__ import annotations

import asyncio
import base64
import io
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from seeing import open_seeing
from specllama import ArgumentError, SpecSession, _core
from specllama.media.placeholders import MARKER
from specllama.model.chat_template import ChatTemplate
from specllama.model.media_prompt import MediaPrompt, n_rows
from specllama.model.media_reader import MediaReader
from vision_models import WRITERS, picture

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
)
OPTIONS: dict[str, Any] = {"max_tokens": 12, "ignore_eos": True}


@pytest.fixture(scope="module", params=["gemma3", "qwen"])
def session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SpecSession]:
    model = WRITERS[request.param](tmp_path_factory.mktemp("models"))
    with open_seeing(model, "ngram", chat_template=TEMPLATE) as opened:
        yield opened


def png(pixels: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def asked(*parts: Any) -> list[dict[str, Any]]:
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in parts]
    return [{"role": "user", "content": content}]


def test_every_source_of_an_image_gives_the_same_prompt(
    session: SpecSession, tmp_path: Path
) -> None:
    pixels = picture(1)
    data = png(pixels)
    path = tmp_path / "image.png"
    path.write_bytes(data)
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    parts = [
        *({"type": "image", "image": one} for one in (path, str(path), data, pixels, url)),
        {"type": "image", "image": Image.fromarray(pixels)},
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "image_url", "image_url": url},
    ]
    prompts = [session.render_chat(asked("a", part, "b")) for part in parts]
    assert all(one == prompts[0] for one in prompts)
    assert isinstance(prompts[0], MediaPrompt)
    assert min(prompts[0]) < 0
    other = session.render_chat(asked("a", {"type": "image", "image": picture(2)}, "b"))
    assert other != prompts[0]
    assert len(other) == len(prompts[0])


def test_every_way_to_ask_about_an_image_gives_the_same_answer(session: SpecSession) -> None:
    messages = asked({"type": "image", "image": picture(1)}, "What is it?")
    answer = session.chat(messages, **OPTIONS)
    assert len(answer.tokens) == 12
    prompt = session.render_chat(messages)
    assert answer.stats.prompt_tokens == n_rows(prompt)
    assert session.generate(prompt, **OPTIONS).tokens == answer.tokens
    assert "".join(one.text for one in session.stream_chat(messages, **OPTIONS)) == answer.text
    assert session.submit_chat(messages, **OPTIONS).result().tokens == answer.tokens
    tooled = session.chat(messages, tools=[], **OPTIONS)
    assert tooled.tokens == answer.tokens

    async def later() -> list[int]:
        return (await session.achat(messages, **OPTIONS)).tokens

    assert asyncio.run(later()) == answer.tokens


def test_a_marker_in_a_generate_prompt_is_replaced_by_an_image(session: SpecSession) -> None:
    text = f"[user]{MARKER}What is it?[assistant]"
    messages = asked({"type": "image", "image": picture(1)}, "What is it?")
    expected = session.chat(messages, **OPTIONS)
    for medium in (picture(1), png(picture(1)), _core.Media.image(picture(1))):
        answer = session.generate(text, media=[medium], echo=True, **OPTIONS)
        assert answer.tokens == expected.tokens
        assert answer.text == text + expected.text


def test_the_next_message_reuses_the_decoded_images(session: SpecSession) -> None:
    messages = asked({"type": "image", "image": picture(3)}, "What is it?")
    first = session.chat(messages, **OPTIONS)
    messages += [{"role": "assistant", "content": first.text}, *asked("And now?")]
    second = session.chat(messages, **OPTIONS)
    assert second.stats.reused_tokens >= first.stats.prompt_tokens - 20


def test_a_marker_in_a_message_stays_text(session: SpecSession) -> None:
    for content in (MARKER, [{"type": "text", "text": MARKER}]):
        prompt = session.render_chat([{"role": "user", "content": content}])
        assert not isinstance(prompt, MediaPrompt)
    image = {"type": "image", "image": picture(1)}
    assert len(session.render_chat(asked(MARKER, image)).parts) == 3  # type: ignore[attr-defined]
    assert min(session.tokenize(MARKER)) >= 0


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "image"}, r"messages\[0\].content\[0\] must be a path"),
        ({"type": "image", "image": "/nowhere.png"}, "/nowhere.png cannot be read"),
        ({"type": "image", "image": b"no image"}, "not a PNG, JPEG"),
        ({"type": "image_url", "image_url": {"url": "/etc/passwd"}}, "must have a data URL"),
        (
            {"type": "image_url", "image_url": {"url": "https://a.com/b.png"}},
            "must have a data URL",
        ),
        ({"type": "image_url"}, "must have a data URL"),
        ({"type": "audio", "audio": "/nowhere.wav"}, "does not accept sounds"),
        ({"type": "input_audio", "input_audio": {}}, "must be a str"),
        ({"type": "video", "video": "x"}, "must have a text"),
    ],
)
def test_an_unusable_message_part_is_refused(
    session: SpecSession, part: dict[str, Any], said: str
) -> None:
    with pytest.raises(ArgumentError, match=said):
        session.chat(asked(part, "What is it?"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prompt": "a", "media": [picture(1)]}, "media has 1 .* but the prompt has 0"),
        ({"prompt": MARKER * 2, "media": [picture(1)]}, "media has 1 .* but the prompt has 2"),
        ({"prompt": MARKER, "media": []}, "media has 0 .* but the prompt has 1"),
        ({"prompt": MARKER + "a", "media": "image.png"}, "media must be a list"),
        ({"prompt": MARKER + "a", "media": [5]}, r"media\[0\] must be a path"),
        ({"prompt": [1, 5], "media": [picture(1)]}, "prompt that is a text"),
    ],
)
def test_media_that_do_not_fit_the_text_are_refused(
    session: SpecSession, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ArgumentError, match=said):
        session.generate(**options)


def test_beam_search_refuses_images(session: SpecSession) -> None:
    prompt = session.render_chat(asked({"type": "image", "image": picture(1)}))
    with pytest.raises(ArgumentError, match="beam_search takes no images"):
        session.beam_search(prompt, 2)


def test_a_template_that_leaves_an_image_out_is_refused(session: SpecSession) -> None:
    messages = [
        {"role": "user", "content": [{"type": "image", "image": picture(1)}]},
        {"role": "user", "content": "b"},
    ]
    reader = session.media_reader()
    only_last = ChatTemplate("{{ messages[-1].content }}", bos="", eos="")
    text = only_last.render(reader.messages(messages))
    with pytest.raises(ArgumentError, match="leaves out 1 of the 1 images"):
        session.tokenize_prompt(text, reader.placeholders)


def test_a_model_without_a_projector_refuses_images(open_session: Any) -> None:
    session = open_session(chat_template=TEMPLATE)
    assert not session.sees
    assert not session.hears
    with pytest.raises(ArgumentError, match="does not accept images; use a model that does"):
        session.chat(asked({"type": "image", "image": picture(1)}))
    with pytest.raises(ArgumentError, match="the model does not accept images"):
        session.generate(MARKER, media=[picture(1)])


def test_sounds_are_resampled_to_the_models_rate(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8_000)
        out.writeframes(np.arange(8_000, dtype="<i2").tobytes())
    reader = MediaReader(sees=False, audio_rate=16_000)
    data = base64.b64encode(path.read_bytes()).decode()
    (message,) = reader.messages(
        asked(
            {"type": "audio", "audio": path},
            {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
        )
    )
    assert isinstance(message["content"], str)
    first, second = reader.placeholders.media
    assert first.id == second.id
