"""Accessibility of the page: axe-core's rules, keyboard only, three sizes, both colour schemes."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, Page, opened
from chat_files import FORMAT, import_chats, turn
from serving import Server

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="requires Chromium")

SIZES = {"phone": (390, 844), "tablet": (820, 1100), "desktop": (1280, 800)}

TEXT = f"""# Title

A **word**, `code`, [a link](https://example.com), $x_1$ and a {"long" * 40} word.

- one
- two

> quoted

| name | {"wide " * 12} | {"wider " * 12} |
|---|---|---|
| a | 1 | 2 |

```python
def f(x: int) -> str:  # comment {"x" * 120}
    return "a" + str(x)
```
"""
TRACE = """<div class="specllama-trace"><p>3 tokens</p>
<div class="strip"><svg role="img" aria-label="rounds" width="900" height="20">
<path class="own" d="M0 0h800v5h-800z"/></svg></div>
<p class="legend"><span class="match">accepted</span> <del>rejected</del></p>
<div class="text"><span class="prompt" title="prompt">p</span><span class="round">
<span class="match" title="round 1: accepted">drafted</span><del title="round 1">no</del>
<strong title="round 1">own</strong><span class="newline">
</span></span></div></div>"""
FIGURES = ["12 tokens", "40.0 tokens/s", "speedup 1.8\u00d7", "2.40 tokens per round", "slot 0"]
ANSWER = {
    "thoughts": [["Hm, ", False], ["let me see.", True]],
    "parts": [[TEXT[:20], False], [TEXT[20:], True]],
    "figures": FIGURES,
    "used": 120,
}
CHAT = {
    "chat": {"id": "1", "title": "A chat", "time": 1, "last": "d"},
    "turns": [
        turn("a", None, "user", "What is it?", files=[{"name": "notes.txt", "text": "some"}]),
        turn("b", "a", "assistant", "An earlier version."),
        turn("c", "a", "assistant", "") | ANSWER,
        turn("d", "c", "user", "And " + "more" * 60 + "?"),
    ],
    "traces": [{"id": "c", "html": TRACE}],
}

TOO_WIDE = """[...document.querySelectorAll("body *")].filter(e => e.checkVisibility()
  && !e.closest(".strip, .code pre, .table, #toasts, .unseen")
  && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 90))"""
SMALL = """[...document.querySelectorAll("button, select, summary")].filter(e => e.checkVisibility()
  && Math.min(e.getBoundingClientRect().width, e.getBoundingClientRect().height) < 24
  ).map(e => e.outerHTML.slice(0, 90))"""
"""Elements below the minimum target size of WCAG 2.2."""

STATES = {
    "new": "at('fresh').click()",
    "answer": "document.querySelector('.thoughts').open = true",
    "trace": "document.querySelector('.assistant .trace').click()",
    "editor": "document.querySelector('.user .edit').click()",
    "settings": "at('show-settings').click()",
    "export": "at('export-chat').click()",
    "compare": """document.body.dataset.mode = 'compare'; at('compared').hidden = false;
      at('question').textContent = 'Why?'; at('plain-rate').textContent = '3 tokens/s';
      at('welcome').hidden = true""",
    "completion": """document.body.dataset.mode = 'completion'; at('welcome').hidden = true;
      at('completion').textContent = 'def f():'""",
}


def axe() -> str:
    spec = importlib.util.find_spec("axe_playwright_python")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(params=["light", "dark"])
def shown(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> Iterator[Page]:
    """A page that shows a chat."""
    page = opened(server, tmp_path, dark=request.param == "dark")
    page.press("Escape")  # the page asks for a key
    page.evaluate("document.body.dataset.mode = 'chat'")
    import_chats(page, {"format": FORMAT, "chats": [CHAT]})
    page.wait_for("document.querySelectorAll('#chats .open').length === 1")
    yield page
    page.close()


def show(page: Page, state: str) -> None:
    """Show the chat in one of STATES."""
    page.evaluate("""
      document.body.dataset.mode = 'chat';
      at('settings').close();
      at('completion').replaceChildren();
      document.querySelector('#chats .open').click()""")
    page.wait_for("at('turns').children.length === 3 || !at('title').hidden")
    page.evaluate(f"(() => {{ {STATES[state]} }})()")


def test_axe_finds_no_violation_in_any_state_size_and_scheme(shown: Page) -> None:
    shown.evaluate(axe())
    wrong = {}
    for name, (width, height) in SIZES.items():
        shown.resize(width, height)
        for state in STATES:
            show(shown, state)
            found = shown.run("""
              await Promise.all(document.getAnimations().map(one => one.finished.catch(() => 0)));
              const {violations} = await axe.run(document, {resultTypes: ["violations"]});
              return violations.map(({id, nodes}) => [id, nodes.map(one => one.html.slice(0, 120)
                + (one.any[0]?.message ?? ""))])""")
            wrong[name, state] = found
    assert not any(wrong.values()), {state: found for state, found in wrong.items() if found}


def test_elements_fit_the_width_and_targets_are_large_enough(shown: Page) -> None:
    for width in (320, 390, 820, 1280):
        shown.resize(width, 800, phone=width < 500)
        for state in STATES:
            show(shown, state)
            assert shown.evaluate(TOO_WIDE) == [], (width, state)
            assert shown.evaluate(SMALL) == [], (width, state)
            # The send button is visible without scrolling.
            assert shown.evaluate("at('go').getBoundingClientRect().bottom <= innerHeight")


def test_each_mode_shows_only_its_own_elements(shown: Page) -> None:
    belonging = {"turns": "chat", "title": "chat", "room": "chat", "completion": "completion"}
    belonging |= {"compared": "compare", "at-once": "compare"}
    for state, mode in {"answer": "chat", "compare": "compare", "completion": "completion"}.items():
        show(shown, state)
        for element, owner in belonging.items():
            visible = shown.evaluate(f"at('{element}').checkVisibility()")
            assert visible == (owner == mode), (state, element)


def test_the_list_on_a_phone_keeps_the_focus_until_escape(shown: Page) -> None:
    shown.resize(390, 844, phone=True)
    shown.wait_for("document.body.dataset.past === 'closed'")
    shown.evaluate("at('show-past').focus()")
    shown.press("Enter")
    shown.wait_for("document.activeElement === at('search')")
    for _ in range(12):
        shown.press("Tab")
        assert shown.evaluate("!document.activeElement.closest('main, body > header')")
    shown.evaluate("at('search').focus()")
    shown.press("Escape")
    shown.wait_for("document.activeElement === at('show-past')")
    assert shown.evaluate("document.body.dataset.past") == "closed"


def test_tab_reaches_every_control_and_each_has_a_name(shown: Page) -> None:
    show(shown, "answer")
    wanted = shown.run("""
      at("fresh").focus();
      return [...document.querySelectorAll("button, input, select, textarea, summary, a[href]")]
        .filter(e => e.checkVisibility() && !e.disabled && e.type !== "radio"
          && !e.closest("[inert], [hidden]")).length""")
    reached = shown.run("window.seen = new Set([document.activeElement]); return 1")
    for _ in range(80):
        shown.press("Tab")
        reached = shown.run("seen.add(document.activeElement); return seen.size")
    names = shown.run("""
      return [...seen].filter(e => e !== document.body && !(e.getAttribute("aria-label")
        || e.textContent.trim() || e.labels?.length)).map(e => e.outerHTML.slice(0, 90))""")
    assert names == []
    assert reached >= wanted


def test_reduced_motion_stops_all_animations(shown: Page) -> None:
    moving = """
      const moves = [];
      for (const e of document.querySelectorAll("*")) {
        const {transitionDuration, animationName} = getComputedStyle(e);
        if (transitionDuration !== "0s" || animationName !== "none") moves.push(e.tagName);
      }
      return moves.length"""
    assert shown.run(moving) > 0
    shown.prefer("prefers-reduced-motion", "reduce")
    assert shown.run(moving) == 0
