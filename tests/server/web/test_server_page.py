"""The page, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import (
    ANSWERED,
    AT,
    CHROMIUM,
    FIGURES,
    LAST,
    LONG,
    TEXTS,
    Page,
    button,
    opened,
    reopen,
    say,
)
from serving import Server
from specllama.requests.background import queue_load

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to show the page in"),
]

TOO_WIDE = """[...document.querySelectorAll("body *")].filter(e =>
  e.checkVisibility() && !e.closest(".strip") && e.getBoundingClientRect().right > WIDTH + 1
).map(e => e.outerHTML.slice(0, 80))"""


OVERLAP = """(() => {
  const [hints, name] = ["#keys", "#settings > summary"].map(one => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector(one));
    return range.getBoundingClientRect();
  });
  return hints.left < name.right && name.left < hints.right &&
    hints.top < name.bottom && name.top < hints.bottom;
})()"""


@contextmanager
def all_places_taken(server: Server) -> Iterator[None]:
    """Keep the server busy, so that no other answer begins."""
    held = [server.session.submit("a", ignore_eos=True) for _ in range(server.session.n_seq)]
    try:
        yield
    finally:
        for one in held:
            one.cancel()


def test_the_page_continues_a_text(server: Server, page: Page) -> None:
    # The model has no chat template.
    assert page.evaluate("document.querySelector('[value=chat]').disabled")
    assert page.evaluate("document.body.dataset.mode") == "completion"
    page.evaluate("at('prompt').value = 'def fibonacci(n):\\n'; at('max_tokens').value = 60")
    page.evaluate("at('form').requestSubmit()")
    page.wait_for("at('end').hidden && !!document.querySelector('.figures')?.textContent")
    expected = server.session.generate("def fibonacci(n):\n", max_tokens=60)
    assert page.evaluate(f"{LAST}.textContent") == "def fibonacci(n):\n" + expected.text
    drafted = page.evaluate(
        "[...document.querySelectorAll('.answer .drafted')].map(e => e.textContent)"
    )
    assert 0 < sum(map(len, drafted)) < len(expected.text)
    figures = page.evaluate("document.querySelector('.figures').textContent")
    assert "60 tokens" in figures
    assert f"{expected.stats.accepted} of {expected.stats.drafted} drafted accepted" in figures

    # The 401 above; nothing that the page did wrong, nothing that its policy forbids.
    assert all("status of 40" in error for error in page.errors), page.errors

    # It is still there when the page comes again, with its figures and its trace.
    page.reload()
    page.wait_for("!!document.querySelector('.figures')?.textContent")
    page.evaluate(AT)
    assert page.evaluate(f"{LAST}.textContent") == "def fibonacci(n):\n" + expected.text
    assert page.evaluate("document.querySelector('.figures').textContent") == figures
    assert page.evaluate(f"!!{button('Trace')}")
    assert page.evaluate("at('prompt').value") == "def fibonacci(n):\n"


def test_an_invalid_setting_is_shown_and_named(chat: Page) -> None:
    chat.evaluate("at('temperature').value = -1")
    chat.type("Hello!")
    chat.press("Enter")
    assert chat.evaluate("at('error').textContent").startswith("Temperature: ")
    assert chat.evaluate("at('settings').open")
    assert chat.evaluate("document.activeElement === at('temperature')")
    assert chat.evaluate("at('prompt').value") == "Hello!"
    chat.evaluate("at('temperature').value = 0; at('prompt').focus()")
    chat.press("Enter")
    chat.wait_for(f"{ANSWERED}2")
    assert chat.evaluate("at('error').textContent") == ""


def test_an_edit_can_be_undone_and_cuts_only_when_sent(chatting: Server, chat: Page) -> None:
    first = say(chat, "What is 2 + 2?", 2)
    chat.type("half a ")
    chat.evaluate(f"{button('Edit')}.click()")
    assert chat.evaluate("at('prompt').value") == "What is 2 + 2?"
    assert chat.evaluate(TEXTS) == ["What is 2 + 2?", first]
    assert chat.evaluate("document.querySelectorAll('.replaced').length") == 2
    chat.press("Escape")
    assert chat.evaluate("at('prompt').value") == "half a "
    assert chat.evaluate("document.querySelectorAll('.replaced').length") == 0

    chat.evaluate(f"{button('Edit')}.click(); at('prompt').value = 'What is 3 + 3?'")
    chat.reload()  # with the edit unsent
    reopen(chat)
    assert chat.evaluate(TEXTS) == ["What is 2 + 2?", first]

    # An edit that is refused leaves the conversation as it was, and can be mended.
    long = "word " * 9000
    chat.evaluate(f"{button('Edit')}.click(); at('prompt').value = {long!r}")
    chat.press("Enter")
    chat.wait_for("at('error').textContent.includes('tokens')")
    assert chat.evaluate(TEXTS) == ["What is 2 + 2?", first]
    assert chat.evaluate("at('prompt').value") == long
    chat.evaluate("at('max_tokens').value = 8; at('prompt').value = 'What is 3 + 3?'")
    chat.press("Enter")
    chat.wait_for(f"{ANSWERED}2 && at('error').textContent === ''")
    second = chatting.session.chat([{"role": "user", "content": "What is 3 + 3?"}], max_tokens=8)
    assert chat.evaluate(TEXTS) == ["What is 3 + 3?", second.text]


def test_again_and_then_stop_keeps_the_old_answer(chatting: Server, chat: Page) -> None:
    first = say(chat, "What is 2 + 2?", 2)
    with all_places_taken(chatting):  # so that the answer cannot begin
        chat.evaluate("document.querySelector('.again').click()")
        assert chat.evaluate("!at('end').hidden")
        chat.press("Escape")
        chat.wait_for(f"{ANSWERED}2")
        assert chat.evaluate(TEXTS) == ["What is 2 + 2?", first]
        assert chat.evaluate("at('prompt').value") == ""

        # The same for leaving the page.
        chat.evaluate("document.querySelector('.again').click()")
        chat.reload()
        reopen(chat)
        assert chat.evaluate(TEXTS) == ["What is 2 + 2?", first]


def test_leaving_the_page_keeps_the_message_and_the_partial_answer(chat: Page) -> None:
    chat.evaluate(LONG)
    chat.type("Count from 1 to 1000, one number a line.")
    chat.press("Enter")
    chat.wait_for(f"{LAST}?.textContent.length > 20")
    chat.evaluate("at('prompt').value = 'not sent yet'")
    chat.reload()
    reopen(chat)
    question, answer = chat.evaluate(TEXTS)
    assert question == "Count from 1 to 1000, one number a line."
    assert len(answer) > 20
    assert "cut off as the page was left" in chat.evaluate(FIGURES)
    assert chat.evaluate("at('prompt').value") == "not sent yet"
    chat.evaluate("at('prompt').value = ''; at('max_tokens').value = 4")
    say(chat, "Thanks.", 4)


def test_a_message_without_an_answer_is_there_after_leaving_the_page(
    chatting: Server, chat: Page
) -> None:
    with all_places_taken(chatting):
        chat.type("What is 2 + 2?")
        chat.press("Enter")
        assert chat.evaluate("!at('end').hidden")
        chat.reload()
        reopen(chat)
        assert chat.evaluate(TEXTS) == []
        assert chat.evaluate("at('prompt').value") == "What is 2 + 2?"


def test_forbidden_actions_during_an_answer_are_explained(chat: Page) -> None:
    say(chat, "Hi", 2)
    chat.evaluate(LONG)
    chat.type("Count from 1 to 1000, one number a line.")
    chat.press("Enter")
    chat.wait_for("at('turns').children.length === 4")
    for action in (
        "at('fresh').click()",
        f"{button('Edit')}.click()",
        "document.querySelector('#chats .open').click()",
        "document.querySelector('#chats .delete').click()",
    ):
        chat.evaluate("at('error').textContent = ''")
        chat.evaluate(action)
        assert "Stop it first" in chat.evaluate("at('error').textContent"), action
        assert chat.evaluate("at('turns').children.length") == 4
    chat.press("Escape")
    chat.wait_for("at('end').hidden")
    assert chat.evaluate("at('error').textContent") == ""


def test_chats_are_never_dropped_for_room(chat: Page) -> None:
    say(chat, "Hi", 2)
    chat.evaluate("""(() => {
      const old = {id: "7", time: 1, turns: [{role: "user", parts: [["old", false]]}]};
      for (const key of Object.keys(localStorage))
        if (key.startsWith("specllama.trace.")) localStorage.removeItem(key);
      localStorage.setItem("specllama.chat.7", JSON.stringify(old));
      localStorage.setItem("specllama.trace.7.1", '"a trace"');
      for (let size = 1 << 22; size >= 1; size >>= 1)
        for (let i = 0; ; ++i)
          try { localStorage.setItem(`other.${size}.${i}`, "x".repeat(size)); } catch { break; }
    })()""")
    say(chat, "Count from 1 to 1000, one number a line.", 4)
    assert "storage is full" in chat.evaluate("at('error').textContent")
    assert chat.evaluate("localStorage.getItem('specllama.chat.7') !== null")
    assert chat.evaluate("localStorage.getItem('specllama.trace.7.1')") is None


def test_the_page_shows_the_trace(page: Page) -> None:
    page.evaluate("at('prompt').value = 'def fibonacci(n):\\n'; at('max_tokens').value = 60")
    page.evaluate("at('form').requestSubmit()")
    page.wait_for(f"at('end').hidden && !!{button('Trace')}")
    page.evaluate(f"{button('Trace')}.focus()")
    page.press("Enter")
    assert page.evaluate("document.querySelectorAll('.trace svg path').length") > 1
    for _ in range(3):  # the copy and the trace have a stop each, then come the tokens
        page.press("Tab")
        if page.evaluate("document.activeElement.closest('.trace .text') !== null"):
            break
    told = "document.querySelector('.trace output').textContent"
    page.press("ArrowRight")
    first = page.evaluate(told)
    assert first.startswith("round 1: ")
    below = "document.querySelector('.trace output').getBoundingClientRect().bottom"
    assert page.evaluate(f"{below} <= at('form').getBoundingClientRect().top + 1")
    page.press("ArrowRight")
    assert page.evaluate(told) != first
    page.press("ArrowLeft")
    assert page.evaluate(told) == first
    assert all("status of 40" in error for error in page.errors), page.errors


def test_the_page_holds_a_conversation(chatting: Server, chat: Page) -> None:
    questions = ["What is 2 + 2? <img src=x onerror=alert(1)>", "And **3** + 3?"]
    messages: list[dict[str, str]] = []
    for i, question in enumerate(questions, 1):
        said = say(chat, question, 2 * i)
        messages.append({"role": "user", "content": question})
        assert said == chatting.session.chat(messages, max_tokens=24).text
        messages.append({"role": "assistant", "content": said})
    assert chat.evaluate("document.querySelectorAll('img').length") == 0
    shown = "[...document.querySelectorAll('#turns .text')].map(e => e.textContent)"
    assert chat.evaluate(shown) == [one["content"] for one in messages]

    # It is still there when the page comes again, and goes on.
    chat.reload()
    chat.wait_for("document.querySelectorAll('#chats .open').length === 1")
    chat.evaluate(AT)
    assert chat.evaluate(shown) == []
    assert chat.evaluate("document.querySelector('#chats .open').textContent") == questions[0]
    chat.evaluate("document.querySelector('#chats .open').focus()")
    chat.press("Enter")
    assert chat.evaluate(shown) == [one["content"] for one in messages]
    assert chat.evaluate("document.querySelectorAll('.answer .drafted').length") > 0
    assert "per second" in chat.evaluate(FIGURES)
    chat.evaluate(f"{button('Trace')}.click()")
    assert chat.evaluate("document.querySelectorAll('.trace svg path').length") > 0
    chat.evaluate("at('max_tokens').value = 8")
    messages.append({"role": "user", "content": "Bye"})
    assert say(chat, "Bye", 6) == chatting.session.chat(messages, max_tokens=8).text

    # Again, and otherwise.
    chat.evaluate("document.querySelector('.again').focus()")
    chat.press("Enter")
    chat.wait_for(f"{ANSWERED}6")
    edits = "[...document.querySelectorAll('.user button')].filter(e => e.textContent === 'Edit')"
    chat.evaluate(f"{edits}[1].click()")
    assert chat.evaluate("at('turns').children.length") == 6
    assert chat.evaluate("at('prompt').value") == questions[1]

    chat.evaluate("window.confirm = () => true; document.querySelector('#chats .delete').click()")
    assert chat.evaluate("at('chats').children.length") == 0
    chat.reload()
    chat.wait_for("document.readyState === 'complete' && !!document.getElementById('chats')")
    assert chat.evaluate("document.querySelectorAll('#chats li').length") == 0
    assert chat.errors == []


def test_the_page_sends_the_system_message(chatting: Server, chat: Page) -> None:
    chat.evaluate("at('system').value = 'Answer in French.'")
    messages = [
        {"role": "system", "content": "Answer in French."},
        {"role": "user", "content": "Hello!"},
    ]
    assert say(chat, "Hello!", 2) == chatting.session.chat(messages, max_tokens=24).text


def test_the_page_keeps_a_message_that_does_not_fit(chat: Page) -> None:
    long = "word " * 9000
    chat.type(long)
    chat.press("Enter")
    chat.wait_for("at('error').textContent.includes('tokens')")
    assert chat.evaluate("at('prompt').value") == long
    assert chat.evaluate("at('turns').children.length") == 0


def test_the_page_stops_an_answer(chatting: Server, chat: Page) -> None:
    chat.evaluate(LONG)
    chat.type("Count from 1 to 1000, one number a line.")
    chat.press("Enter")
    chat.wait_for(f"{LAST}?.textContent.length > 5")
    chat.press("Escape")
    chat.wait_for(
        "at('end').hidden && document.querySelector('.figures').textContent.includes('stopped')"
    )
    assert chat.evaluate("at('error').textContent") == ""
    assert chat.evaluate(f"!!{button('Trace')}")
    while queue_load(chatting.session).n_running:
        pass
    # It stands, and the conversation goes on.
    chat.evaluate("at('max_tokens').value = 4")
    say(chat, "Thanks.", 4)


def test_shift_enter_adds_a_line(chat: Page) -> None:
    chat.type("one")
    chat.press("Enter", shift=True)
    chat.type("two")
    assert chat.evaluate("at('prompt').value") == "one\ntwo"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_the_page_fits_phones_and_desktops_in_light_and_dark(
    chatting: Server, tmp_path: Path, dark: bool, phone: bool
) -> None:
    page = opened(chatting, tmp_path, dark=dark, phone=phone)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(24, 24, 24)" if dark else "rgb(255, 255, 255)")
    page.evaluate("at('max_tokens').value = 24; at('prompt').focus()")
    page.type("```\n" + "x" * 300 + "\n```")
    page.evaluate("at('form').requestSubmit()")
    page.wait_for(f"{ANSWERED}2")
    page.evaluate("document.querySelectorAll('.answer .tools button')[1].click()")
    page.evaluate("at('settings').open = at('past').open = true")
    for width in (390, 320) if phone else (1280, 800, 500, 390, 320):
        page.resize(width, 800, phone=phone)
        for mode in ("chat", "completion"):
            page.evaluate(f"document.querySelector('[value={mode}]').click()")
            assert page.evaluate(TOO_WIDE.replace("WIDTH", str(width))) == [], mode
            assert not page.evaluate(OVERLAP), (width, mode)
            # What one acts by is there without scrolling.
            assert page.evaluate("at('go').getBoundingClientRect().top < innerHeight")
    page.close()
