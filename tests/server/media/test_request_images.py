"""Images in requests of all APIs."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image
from serving import Server, refused, serve, wait_until
from specllama import SpecSession
from specllama.media.placeholders import MARKER
from specllama.server.anthropic.input import read_conversation
from specllama.server.body.conversation import read_chat
from specllama.server.body.fields import Fields
from specllama.server.media.request_media import RequestMedia
from specllama.server.responses.input import read_input


def picture(seed: int, kind: str = "PNG") -> bytes:
    """An image file of noise."""
    pixels = np.random.default_rng(seed).integers(0, 256, (40, 56, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def data_url(data: bytes) -> str:
    return f"data:image/png;base64,{encoded(data)}"


ONE = picture(1)
ASKED = "What is it?"
LIMITS = {"temperature": 0, "seed": 0}


def openai_part(data: bytes) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(data)}}


def anthropic_part(data: bytes) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": encoded(data)}
    return {"type": "image", "source": source}


def by_openai(server: Server, *images: bytes) -> tuple[str, int]:
    content = [*map(openai_part, images), {"type": "text", "text": ASKED}]
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 4, **LIMITS}
    answer = posted(server, "/v1/chat/completions", body)
    return answer["choices"][0]["message"]["content"], answer["usage"]["prompt_tokens"]


def by_responses(server: Server, *images: bytes) -> tuple[str, int]:
    content = [
        *({"type": "input_image", "image_url": data_url(one)} for one in images),
        {"type": "input_text", "text": ASKED},
    ]
    body = {"input": [{"role": "user", "content": content}], "max_output_tokens": 4, **LIMITS}
    answer = posted(server, "/v1/responses", body)
    texts = [part["text"] for item in answer["output"] for part in item["content"]]
    return "".join(texts), answer["usage"]["input_tokens"]


def by_anthropic(server: Server, *images: bytes) -> tuple[str, int]:
    content = [*map(anthropic_part, images), {"type": "text", "text": ASKED}]
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 4, **LIMITS}
    counted = posted(server, "/v1/messages/count_tokens", body)["input_tokens"]
    answer = posted(server, "/v1/messages", body)
    usage = answer["usage"]
    n_tokens = usage["input_tokens"] + usage["cache_read_input_tokens"]
    assert counted == n_tokens
    return "".join(block["text"] for block in answer["content"]), n_tokens


def by_ollama_chat(server: Server, *images: bytes) -> tuple[str, int]:
    message = {"role": "user", "content": ASKED, "images": [*map(encoded, images)]}
    body = {"messages": [message], "stream": False, "options": {"num_predict": 4, **LIMITS}}
    answer = posted(server, "/api/chat", body)
    return answer["message"]["content"], answer["prompt_eval_count"]


def by_ollama_generate(server: Server, *images: bytes) -> tuple[str, int]:
    body = {"prompt": ASKED, "images": [*map(encoded, images)], "stream": False}
    answer = posted(server, "/api/generate", body | {"options": {"num_predict": 4, **LIMITS}})
    assert ("context" in answer) == (not images)
    return answer["response"], answer["prompt_eval_count"]


APIS = [by_openai, by_responses, by_anthropic, by_ollama_chat, by_ollama_generate]


def posted(server: Server, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = server.post(path, body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def chatted(session: SpecSession, *images: bytes) -> tuple[str, int]:
    content = [*({"type": "image", "image": one} for one in images),
               {"type": "text", "text": ASKED}]  # fmt: skip
    answer = session.chat([{"role": "user", "content": content}], max_tokens=4, **LIMITS)
    return answer.text, answer.stats.prompt_tokens


@pytest.mark.parametrize("ask", APIS)
@pytest.mark.parametrize("images", [[], [ONE], [ONE, picture(2)]])
def test_every_api_answers_like_a_chat_with_the_same_images(
    server: Server, ask: Callable[..., tuple[str, int]], images: list[bytes]
) -> None:
    assert ask(server, *images) == chatted(server.session, *images)


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "GIF", "BMP"])
def test_the_media_type_of_a_data_url_may_be_wrong(server: Server, kind: str) -> None:
    data = picture(3, kind)
    assert by_openai(server, data) == chatted(server.session, data)


def test_images_keep_their_place_in_the_message(server: Server) -> None:
    parts = [{"type": "text", "text": "a"}, openai_part(ONE), {"type": "text", "text": "b"}]
    body = {"messages": [{"role": "user", "content": parts}]}
    shown = posted(server, "/apply-template", body)["prompt"]
    assert f"a{MARKER}b" in shown


def test_a_marker_in_a_text_is_not_an_image(server: Server) -> None:
    text = {"type": "text", "text": f"{MARKER} <__image__>"}
    body = {
        "messages": [{"role": "user", "content": [text, openai_part(ONE)]}],
        "max_tokens": 1,
    }
    posted(server, "/v1/chat/completions", body)
    body["messages"] = [{"role": "user", "content": [text]}]
    posted(server, "/v1/chat/completions", body)


def test_tool_results_may_contain_images(session: SpecSession) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    use = {"type": "tool_use", "id": "1", "name": "look", "input": {}}
    text = {"type": "text", "text": "seen"}
    of_openai = {"messages": [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": [text, openai_part(ONE)]},
    ]}  # fmt: skip
    assert f"seen{MARKER}" in read_chat(session, Fields(of_openai)).shown
    result = {"type": "tool_result", "tool_use_id": "1", "content": [text, anthropic_part(ONE)]}
    of_anthropic = {"messages": [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]}  # fmt: skip
    assert f"seen{MARKER}" in read_conversation(session, Fields(of_anthropic)).shown
    output = [{"type": "input_text", "text": "seen"},
              {"type": "input_image", "image_url": data_url(ONE)}]  # fmt: skip
    of_responses = Fields({"input": [
        {"role": "user", "content": "u"},
        {"type": "function_call", "call_id": "1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": output},
    ]})  # fmt: skip
    media = RequestMedia(session, of_responses)
    *_, last = read_input(of_responses, media)
    assert media.taken().shown(last["content"]) == f"seen{MARKER}"


WRONG: list[tuple[Any, str]] = [
    ({"url": "data:image/png;base64,AAAA"}, "not a PNG, JPEG, WebP, GIF or BMP file"),
    ({"url": "data:image/png;base64,&"}, "not base64"),
    ({"url": data_url(ONE[:100])}, "damaged PNG file"),
    ({"url": data_url(picture(1, "BMP").replace(b"\x38\0\0\0\x28\0", b"\xff\xff\0\0\xff\xff"))},
     "pixels, more than"),
    ({"url": "file:///etc/passwd"}, "must be a data URL"),
    ({"url": "/etc/passwd"}, "must be a data URL"),
    ({"url": "http://127.0.0.1/a.png"}, "must be a data URL"),
    ({"url": "https://example.com/a.png"}, "does not download images"),
    ({"url": 5}, "must be a string"),
    ({}, "url is missing"),
    (None, "image_url is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("image", "said"), WRONG)
def test_an_invalid_image_is_refused(server: Server, image: Any, said: str) -> None:
    content = [{"type": "image_url", "image_url": image}]
    answer = server.post(
        "/v1/chat/completions", {"messages": [{"role": "user", "content": content}]}
    )
    error = refused(answer, 400)
    assert said in error["message"]
    assert error["param"].startswith("messages[0].content[0].image_url")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"type": "base64", "data": "AAAA"}, "not a PNG"),
        ({"type": "base64"}, "data is missing"),
        ({"type": "url", "url": "https://example.com/a.png"}, "does not download images"),
        ({"type": "file", "file_id": "x"}, 'must be \\"base64\\" or \\"url\\"'),
        ({}, "type is missing"),
    ],
)
def test_an_invalid_image_block_is_refused(server: Server, source: Any, said: str) -> None:
    content = [{"type": "image", "source": source}]
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 1}
    answer = server.post("/v1/messages", body)
    assert answer.status_code == 400
    assert said in answer.text


def test_a_sound_is_refused_if_the_model_cannot_hear(server: Server) -> None:
    part = {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "wav"}}
    body = {"messages": [{"role": "user", "content": [part]}], "max_tokens": 1}
    error = refused(server.post("/v1/chat/completions", body), 400)
    assert "is a sound, but the model does not accept sounds" in error["message"]
    assert error["param"] == "messages[0].content[0].input_audio.data"


def test_endpoints_report_that_the_model_sees(server: Server) -> None:
    assert server.get("/props").json()["modalities"] == {"vision": True, "audio": False}
    assert server.get("/v1/models").json()["data"][0]["meta"]["vision"] is True
    shown = server.post("/api/show", {"model": "test"}).json()
    assert "vision" in shown["capabilities"]


def test_a_request_with_images_may_be_large(server: Server, session: SpecSession) -> None:
    large = data_url(ONE + bytes(3_000_000))  # Pillow ignores bytes after the image
    content = [{"type": "image_url", "image_url": {"url": large}}]
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 1}
    posted(server, "/v1/chat/completions", body)
    with serve(session, max_body=1_000_000) as limited:
        assert limited.post("/v1/chat/completions", body).status_code == 413


def test_image_urls_are_downloaded_if_allowed(
    session: SpecSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def image(self: object, field: str, url: str) -> bytes:
        asked.append(url)
        return ONE

    monkeypatch.setattr("specllama.server.media.download.Downloads.image", image)
    first, second = "https://example.com/1.png", "https://example.com/2.png"
    with serve(session, allow_image_urls=True) as server:
        parts = [{"type": "image_url", "image_url": {"url": one}} for one in (first, second, first)]
        content = [*parts, {"type": "text", "text": ASKED}]
        body = {"messages": [{"role": "user", "content": content}], "max_tokens": 4, **LIMITS}
        answer = posted(server, "/v1/chat/completions", body)
        assert sorted(asked) == [first, second]
        expected = chatted(session, ONE, ONE, ONE)
        assert answer["choices"][0]["message"]["content"] == expected[0]
        block = {"type": "image", "source": {"type": "url", "url": first}}
        messages = [{"role": "user", "content": [block]}]
        posted(server, "/v1/messages/count_tokens", {"messages": messages})
        many = [
            {"type": "image_url", "image_url": {"url": f"https://example.com/{i}.png"}}
            for i in range(17)
        ]
        answer = server.post(
            "/v1/chat/completions", {"messages": [{"role": "user", "content": many}]}
        )
        assert "at most 16 image URLs" in refused(answer, 400)["message"]


def test_a_private_image_url_is_refused_even_if_downloads_are_allowed(session: SpecSession) -> None:
    with serve(session, allow_image_urls=True) as server:
        part = {"type": "image_url", "image_url": {"url": f"{server.url}/health"}}
        body = {"messages": [{"role": "user", "content": [part]}]}
        error = refused(server.post("/v1/chat/completions", body), 400)
        assert "the address is not public" in error["message"]


def test_the_media_of_waiting_requests_are_bounded(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specllama.server.media.access._MOST_HELD", 10_000)
    part = openai_part(ONE)  # 6720 bytes of pixels
    body = {"messages": [{"role": "user", "content": [part]}], "max_tokens": 1}
    for _ in range(3):  # the memory is released after each answer
        wait_until(lambda: server.post("/v1/chat/completions", body).status_code == 200)
    body["messages"] = [{"role": "user", "content": [part, part]}]
    error = refused(server.post("/v1/chat/completions", body), 503)
    assert "busy with other images" in error["message"]
