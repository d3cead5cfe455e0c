"""Files and images of messages on the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, Page, opened
from serving import Server

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="requires Chromium")

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
FILES = f"""
  const bytes = Uint8Array.from(atob("{PIXEL}"), one => one.charCodeAt(0));
  const given = {{
    text: new File(["def f(): ```pass```\\n"], "f.py", {{type: "text/x-python"}}),
    image: new File([bytes], "dot.png", {{type: "image/png"}}),
    broken: new File(["no image"], "broken.png", {{type: "image/png"}}),
    binary: new File([bytes], "data.bin"),
    large: new File(["x".repeat(600_000)], "large.txt", {{type: "text/plain"}}),
  }};
"""
CHIPS = "[...document.querySelectorAll('#files .chip')].map(e => e.textContent)"


def drop(page: Page, name: str, how: str = "drop") -> None:
    """Drop or paste a file."""
    page.run(f"""{FILES}
      const data = new DataTransfer();
      data.items.add(given["{name}"]);
      at("prompt").dispatchEvent("{how}" === "drop"
        ? new DragEvent("drop", {{dataTransfer: data, bubbles: true, cancelable: true}})
        : new ClipboardEvent("paste", {{clipboardData: data, bubbles: true, cancelable: true}}));
      await new Promise(resolve => setTimeout(resolve, 100));""")


@pytest.fixture
def attaching(server: Server, tmp_path: Path) -> Iterator[Page]:
    """A page that captures requests, for a model that sees images."""
    page = opened(server, tmp_path)
    page.press("Escape")  # the page asks for a key
    page.run("""
      const attachments = await import("/page/attachments.js");
      attachments.allowImages(true);
      const real = fetch;
      window.bodies = [];
      window.fetch = (url, options) => {
        if (!url.startsWith("/v1/chat")) return real(url, options);
        bodies.push(JSON.parse(options.body));
        return Promise.reject(new TypeError("caught"));
      };
      document.body.dataset.mode = "chat";
      const choice = document.querySelector("[value=chat]");
      choice.disabled = false;
      choice.checked = true;""")
    yield page
    page.close()


def sent(page: Page, text: str) -> Any:
    """Send a text; return the content of the message."""
    page.evaluate(f"at('prompt').value = {text!r}; at('form').requestSubmit()")
    page.wait_for("window.bodies.length === 1")
    return json.loads(page.evaluate("JSON.stringify(bodies[0].messages.at(-1).content)"))


@pytest.mark.parametrize("how", ["drop", "paste"])
def test_a_text_file_becomes_a_part_of_the_message(attaching: Page, how: str) -> None:
    drop(attaching, "text", how)
    attaching.wait_for(f"{CHIPS}.join() === 'f.py'")
    expected = "f.py:\n````\ndef f(): ```pass```\n````\n\nWhat is it?"
    assert sent(attaching, "What is it?") == expected
    assert attaching.evaluate(CHIPS) == []
    attaching.wait_for("document.querySelector('.user .chip')?.textContent === 'f.py'")


def test_an_image_is_sent_as_a_data_url(attaching: Page) -> None:
    drop(attaching, "image")
    attaching.wait_for("document.querySelectorAll('#files img').length === 1")
    image, text = sent(attaching, "What is it?")
    assert text == {"type": "text", "text": "What is it?"}
    assert image["type"] == "image_url"
    assert image["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    attaching.wait_for("document.querySelector('.user .chip img')?.naturalWidth === 1")
    assert attaching.errors == [one for one in attaching.errors if "status of 40" in one]


def test_a_file_can_be_removed(attaching: Page) -> None:
    drop(attaching, "text")
    attaching.wait_for(f"{CHIPS}.join() === 'f.py'")
    attaching.evaluate("document.querySelector('#files .remove').click()")
    assert attaching.evaluate(CHIPS) == []
    assert sent(attaching, "Hi") == "Hi"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("broken", "The browser cannot read the image broken.png"),
        ("binary", "data.bin is not UTF-8 text"),
        ("large", "large.txt has 600000 bytes"),
    ],
)
def test_unsupported_files_are_refused(attaching: Page, name: str, error: str) -> None:
    drop(attaching, name)
    attaching.wait_for(f"at('error').textContent.startsWith({error!r})")
    assert attaching.evaluate(CHIPS) == []


def test_images_are_refused_if_the_model_cannot_see(attaching: Page) -> None:
    attaching.run("(await import('/page/attachments.js')).allowImages(false)")
    drop(attaching, "image")
    attaching.wait_for(
        "at('error').textContent === 'dot.png is an image, but this model cannot read images.'"
    )
    assert "image" not in attaching.evaluate("at('file').accept")
