"""Images on the page, with a server whose model sees."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import CHROMIUM, TEXTS, Page, opened, reload, reopen, say
from numpy.typing import NDArray
from PIL import Image
from seeing import open_seeing
from serving import Server, serve
from vision_models import picture, write_qwen

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to show the page in")

TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    model = write_qwen(tmp_path_factory.mktemp("models"))
    with (
        open_seeing(model, "ngram", chat_template=TEMPLATE, n_ctx=8192, spec_length=3) as session,
        serve(session) as running,
    ):
        yield running


@pytest.fixture
def page(seeing: Server, tmp_path: Path) -> Iterator[Page]:
    page = opened(seeing, tmp_path)
    page.evaluate("at('max_tokens').value = 12")
    yield page
    page.close()


def drop(page: Page, pixels: NDArray[np.uint8]) -> None:
    """Drop an image, and wait until it is shown."""
    start_drop(page, pixels)
    page.wait_for("document.querySelectorAll('#files img').length === 1")


def start_drop(page: Page, pixels: NDArray[np.uint8]) -> None:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    page.run(f"""
      const text = atob("{base64.b64encode(file.getvalue()).decode()}");
      const bytes = Uint8Array.from(text, one => one.charCodeAt(0));
      const data = new DataTransfer();
      data.items.add(new File([bytes], "image.png", {{type: "image/png"}}));
      at("prompt").dispatchEvent(
        new DragEvent("drop", {{dataTransfer: data, bubbles: true, cancelable: true}}));""")


def image(pixels: NDArray[np.uint8]) -> dict[str, Any]:
    return {"type": "image", "image": pixels}


def test_a_dropped_image_is_answered_as_by_a_session(seeing: Server, page: Page) -> None:
    pixels = picture(1)
    drop(page, pixels)
    assert page.evaluate("at('error').textContent") == ""
    answer = say(page, "What is it?", 2)
    content = [image(pixels), {"type": "text", "text": "What is it?"}]
    messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
    assert answer == seeing.session.chat(messages, max_tokens=12).text
    page.wait_for("document.querySelector('.user .chip img')?.naturalWidth === 80")

    n_encoded = seeing.session._backend.n_encoded
    answer = say(page, "And now?", 4)
    messages += [
        {"role": "assistant", "content": page.evaluate(TEXTS)[1]},
        {"role": "user", "content": "And now?"},
    ]
    assert answer == seeing.session.chat(messages, max_tokens=12).text
    assert seeing.session._backend.n_encoded == n_encoded

    reopen(page)
    page.wait_for("document.querySelector('.user .chip img')?.naturalWidth === 80")
    assert page.errors == []


def test_an_image_waits_until_the_server_has_said_whether_the_model_sees(page: Page) -> None:
    page.run_first("""
      const fetchNow = window.fetch;
      window.fetch = async (path, options) => {
        if (path.startsWith("/props")) await new Promise(resolve => { window.answer = resolve; });
        return fetchNow(path, options);
      };""")
    reload(page)
    page.wait_for("'answer' in window")
    start_drop(page, picture(1))
    assert page.evaluate("at('files').childElementCount") == 0
    page.evaluate("answer()")
    page.wait_for("document.querySelectorAll('#files img').length === 1")
    assert page.evaluate("at('error').textContent") == ""


def test_a_large_image_is_reduced_and_what_is_transparent_is_white(page: Page) -> None:
    pixels = np.zeros((3000, 1000, 4), np.uint8)
    drop(page, pixels)
    page.wait_for("document.querySelector('#files img').naturalHeight === 2048")
    color = page.run("""
      const canvas = document.createElement("canvas");
      const context = canvas.getContext("2d");
      context.drawImage(document.querySelector("#files img"), 0, 0);
      return [...context.getImageData(0, 0, 1, 1).data].join();""")
    assert color == "255,255,255,255"
