"""A headless Chromium, controlled by the DevTools protocol, with the server's page in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from serving import Server

_NAMES = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome", "chrome")

_DESKTOP, _PHONE = (1280, 800), (390, 844)
_KEYS = {
    "Tab": ("", 9),
    "Enter": ("\r", 13),
    "Escape": ("", 27),
    "ArrowLeft": ("", 37),
    "ArrowRight": ("", 39),
}
"""The text and the key code of each key."""


def find_chromium() -> str | None:
    """Return the path that the variable CHROMIUM names, or that of a usual name."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


class Page:
    """A page in a browser of its own.

    Args:
        program: Path of the browser.
        url: Address to open.
        profile: An empty folder.
        dark: Whether the page's user prefers a dark colour scheme.
        phone: Whether the page is shown on a phone: narrow, with touch input.
    """

    def __init__(
        self, program: str, url: str, profile: Path, *, dark: bool = False, phone: bool = False
    ) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def connect() -> None:  # it reads commands from descriptor 3 and answers on 4
            spare = [os.dup(to_browser), os.dup(from_browser)]
            high = [os.dup2(one, 20 + i) for i, one in enumerate(spare)]
            for target, one in zip((3, 4), high, strict=True):
                os.dup2(one, target)

        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            [program, *flags, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=connect,
            close_fds=False,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._n_sent = 0
        self._session: str | None = None
        self.errors: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.prefer("prefers-color-scheme", "dark" if dark else "light")
        self.resize(*(_PHONE if phone else _DESKTOP), phone=phone)
        self._call("Emulation.setTouchEmulationEnabled", enabled=phone)
        self._call("Runtime.enable")
        self._call("Log.enable")
        self._call("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """Return the value of a script, awaited if it is a promise; None if it throws."""
        return self._evaluated(script)["result"].get("value")

    def run(self, body: str) -> Any:
        """Return what the body of an async function returns. An exception fails the test."""
        answer = self._evaluated(f"(async () => {{ {body} }})()")
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def _evaluated(self, script: str) -> dict[str, Any]:
        return self._call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )

    def wait_for(self, script: str) -> None:
        """Wait until a script returns true."""
        end = time.monotonic() + 60
        while self.evaluate(script) is not True:
            assert time.monotonic() < end, f"never: {script}"
            time.sleep(0.02)

    def prefer(self, feature: str, value: str) -> None:
        """Set a preference of the page's user, a media feature, and reset all others."""
        self._call("Emulation.setEmulatedMedia", features=[{"name": feature, "value": value}])

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        """Show the page in a window of another size, in CSS pixels."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def type(self, text: str) -> None:
        """Insert a text at the focus."""
        self._call("Input.insertText", text=text)

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key of `_KEYS`."""
        text, code = _KEYS[key]
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 * shift}
        self._call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self._call("Input.dispatchKeyEvent", type="keyUp", **common)

    def run_first(self, script: str) -> None:
        """Run a script before those of all pages that are loaded later."""
        self._call("Page.enable")
        self._call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def reload(self) -> None:
        self._call("Page.reload")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._n_sent += 1
        message: dict[str, Any] = {"id": self._n_sent, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._n_sent:
                assert "error" not in answer, answer
                return dict(answer["result"])
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.errors.append(json.dumps(answer["params"]))

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 16)
            assert part, "the browser has ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))


CHROMIUM = find_chromium()

CONNECTED = "/context|key/.test(document.getElementById('model')?.textContent)"
AT = "window.at = id => document.getElementById(id);"
ANSWERED = "at('end').hidden && at('turns').children.length === "
LAST = "[...document.querySelectorAll('#turns .answer > .text, #completion > .text')].at(-1)"
LONG = "at('max_tokens').value = 1900; at('temperature').value = 1; at('seed').value = 3"
"""Settings for a long answer."""

TEXTS = """(async () => {
  const [conversation, chats, tree, turn] = await Promise.all(
    ["conversation", "chats", "tree", "turn"].map(name => import(`/page/${name}.js`)));
  const chat = await chats.chat(conversation.current().id);
  if (!chat) return [];
  const turns = new Map((await chats.turns(chat.id)).map(one => [one.id, one]));
  return tree.path(turns, chat.last).map(turn.textOf);
})()"""
"""The texts of the shown turns, as the browser stores them."""

FIGURES = "[...document.querySelectorAll('#turns .figures')].at(-1).textContent"


def button(name: str) -> str:
    """Return a script for the last button with this name."""
    return (
        f"[...document.querySelectorAll('.tools .icon-button')]"
        f".findLast(e => e.title === {name!r} && e.checkVisibility())"
    )


def reload(page: Page) -> None:
    """Reload the page."""
    page.evaluate("window.isOld = true")
    page.reload()
    page.wait_for(
        "!window.isOld && /context|key/.test(document.getElementById('model')?.textContent)"
    )
    page.evaluate(AT)


def reopen(page: Page) -> None:
    """Reload the page, and open the latest chat."""
    reload(page)
    page.wait_for("document.querySelectorAll('#chats .open').length > 0")
    page.evaluate("document.querySelector('#chats .open').click()")
    page.wait_for("at('turns').children.length > 0")


def opened(server: Server, profile: Path, *, dark: bool = False, phone: bool = False) -> Page:
    """Open the page of a server."""
    assert CHROMIUM is not None
    page = Page(CHROMIUM, server.url, profile, dark=dark, phone=phone)
    page.wait_for(CONNECTED)
    page.evaluate(AT)
    return page


def say(page: Page, text: str, n_turns: int) -> str:
    """Send a message with keys only; return the answer."""
    assert page.evaluate("document.activeElement === at('prompt')")
    page.type(text)
    page.press("Enter")
    page.wait_for(f"{ANSWERED}{n_turns}")
    assert page.evaluate("at('error').textContent") == ""
    return str(page.evaluate(TEXTS)[-1])
