"""A conversation on the page, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from browser import (
    ANSWERED,
    CHROMIUM,
    FIGURES,
    LONG,
    TEXTS,
    Page,
    button,
    reload,
    reopen,
    say,
)
from serving import Server
from specllama.requests.background import queue_load

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="requires Chromium"),
]

COUNT = "Count from 1 to 1000, one number a line."
WRITTEN = "document.querySelector('#turns .answer:last-child .text')?.textContent.length"


@contextmanager
def all_slots_taken(server: Server) -> Iterator[None]:
    """Keep the server busy, so that no other answer begins."""
    held = [server.session.submit("a", ignore_eos=True) for _ in range(server.session.n_seq)]
    try:
        yield
    finally:
        for one in held:
            one.cancel()


def expected(server: Server, *texts: str, max_tokens: int = 24) -> str:
    """Return the answer to a conversation that begins with the user's text."""
    messages = [
        {"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)
    ]
    return server.session.chat(messages, max_tokens=max_tokens).text


def begin_long_answer(page: Page, n_turns: int) -> None:
    page.evaluate(LONG)
    page.type(COUNT)
    page.press("Enter")
    page.wait_for(f"at('turns').children.length === {n_turns} && {WRITTEN} > 5")


def test_a_conversation_is_shown_stored_and_continued(chatting: Server, chat: Page) -> None:
    questions = ["What is 2 + 2? <img src=x onerror=alert(1)>", "And **3** + 3?"]
    texts: list[str] = []
    for i, question in enumerate(questions, 1):
        texts.append(question)
        answer = say(chat, question, 2 * i)
        assert answer == expected(chatting, *texts)
        texts.append(answer)
    assert chat.evaluate("document.querySelectorAll('#turns img').length") == 0
    assert chat.evaluate(TEXTS) == texts

    reopen(chat)
    assert chat.evaluate(TEXTS) == texts
    assert chat.evaluate("document.querySelector('#chats .open').textContent") == questions[0]
    assert chat.evaluate("document.querySelectorAll('#turns .answer .drafted').length") > 0
    assert "tokens/s" in chat.evaluate(FIGURES)
    chat.evaluate(f"{button('Trace')}.click()")
    chat.wait_for("document.querySelectorAll('.picture .strip path').length > 0")
    chat.evaluate("at('max_tokens').value = 8; at('prompt').focus()")
    assert say(chat, "Bye", 6) == expected(chatting, *texts, "Bye", max_tokens=8)
    assert chat.evaluate("Number(at('context').value)") > 40
    assert chat.errors == []


def test_an_invalid_setting_is_shown_and_named(chat: Page) -> None:
    chat.evaluate("at('temperature').value = -1")
    chat.type("Hello!")
    chat.press("Enter")
    chat.wait_for("at('error').textContent.startsWith('Temperature: ')")
    assert chat.evaluate("at('settings').open")
    assert chat.evaluate("document.activeElement === at('temperature')")
    assert chat.evaluate("at('prompt').value") == "Hello!"
    chat.evaluate("at('temperature').value = 0")
    chat.press("Escape")
    assert not chat.evaluate("at('settings').open")
    chat.evaluate("at('prompt').focus()")
    chat.press("Enter")
    chat.wait_for(f"{ANSWERED}2")
    assert chat.evaluate("at('error').textContent") == ""


def test_editing_a_message_adds_a_version(chatting: Server, chat: Page) -> None:
    first = say(chat, "What is 2 + 2?", 2)
    chat.evaluate("document.querySelector('.user .edit').click()")
    assert chat.evaluate("document.activeElement.value") == "What is 2 + 2?"
    chat.press("Escape")
    assert chat.evaluate("document.querySelector('.editor') === null")
    assert chat.evaluate(TEXTS) == ["What is 2 + 2?", first]

    chat.evaluate("document.querySelector('.user .edit').click()")
    chat.evaluate("document.activeElement.value = 'What is 3 + 3?'")
    chat.evaluate("document.querySelector('.editor').requestSubmit()")
    chat.wait_for(f"{ANSWERED}2 && !document.querySelector('.busy')")
    second = expected(chatting, "What is 3 + 3?")
    assert chat.evaluate(TEXTS) == ["What is 3 + 3?", second]
    assert chat.evaluate("document.querySelector('.versions').textContent") == "2 / 2"

    chat.evaluate("document.querySelector('.versions .previous').click()")
    chat.wait_for("document.querySelector('.versions').textContent === '1 / 2'")
    reopen(chat)
    assert chat.evaluate(TEXTS) == ["What is 2 + 2?", first]
    chat.evaluate("document.querySelector('.versions .next').click()")
    chat.wait_for("document.querySelector('.versions').textContent === '2 / 2'")
    assert chat.evaluate(TEXTS) == ["What is 3 + 3?", second]


def test_an_answer_has_versions_and_can_be_edited(chatting: Server, chat: Page) -> None:
    first = say(chat, "What is 2 + 2?", 2)
    chat.evaluate(
        "at('max_tokens').value = 4; document.querySelector('.assistant .regenerate').click()"
    )
    chat.wait_for("at('end').hidden && !!document.querySelector('.assistant .versions')")
    second = expected(chatting, "What is 2 + 2?", max_tokens=4)
    assert chat.evaluate(TEXTS) == ["What is 2 + 2?", second]

    chat.evaluate("document.querySelector('.assistant .edit').click()")
    chat.evaluate("document.activeElement.value = 'It is **five**.'")
    chat.evaluate("document.querySelector('.editor').requestSubmit()")
    chat.wait_for("document.querySelector('.versions')?.textContent === '3 / 3'")
    assert chat.evaluate("document.querySelector('.assistant strong').textContent") == "five"
    assert "edited by you" in chat.evaluate(FIGURES)
    chat.evaluate("at('prompt').focus()")
    third = say(chat, "Sure?", 4)
    assert third == expected(chatting, "What is 2 + 2?", "It is **five**.", "Sure?", max_tokens=4)

    for label in ("2 / 3", "1 / 3"):
        chat.evaluate("document.querySelector('.assistant .previous').click()")
        chat.wait_for(f"document.querySelector('.versions').textContent === '{label}'")
    assert chat.evaluate(TEXTS) == ["What is 2 + 2?", first]


def test_an_answer_can_be_continued(chatting: Server, chat: Page) -> None:
    chat.evaluate("at('max_tokens').value = 6")
    first = say(chat, COUNT, 2)
    assert "stopped at max tokens" in chat.evaluate(FIGURES)
    more = expected(chatting, COUNT, first, max_tokens=6)
    chat.evaluate(f"{button('Continue')}.click()")
    chat.wait_for(f"at('end').hidden && {WRITTEN} > {len(first.split()[0])}")
    assert chat.evaluate(TEXTS) == [COUNT, first + more]
    reopen(chat)
    assert chat.evaluate(TEXTS) == [COUNT, first + more]


def test_stopping_a_regeneration_keeps_the_old_answer(chatting: Server, chat: Page) -> None:
    first = say(chat, "What is 2 + 2?", 2)
    with all_slots_taken(chatting):  # so that the answer cannot begin
        chat.evaluate("document.querySelector('.assistant .regenerate').click()")
        chat.wait_for("!at('end').hidden")
        chat.press("Escape")
        chat.wait_for(f"{ANSWERED}2 && !document.querySelector('.busy')")
        assert chat.evaluate(TEXTS) == ["What is 2 + 2?", first]

        # The same for leaving the page.
        chat.evaluate("document.querySelector('.assistant .regenerate').click()")
        chat.wait_for("!at('end').hidden")
        reopen(chat)
        assert chat.evaluate(TEXTS) == ["What is 2 + 2?", first]


def test_leaving_the_page_keeps_the_message_and_the_partial_answer(chat: Page) -> None:
    begin_long_answer(chat, 2)
    chat.evaluate("at('prompt').value = 'not sent yet'")
    reopen(chat)
    question, answer = chat.evaluate(TEXTS)
    assert question == COUNT
    assert len(answer) > 5
    assert "interrupted when the page was closed" in chat.evaluate(FIGURES)
    assert chat.evaluate("at('prompt').value") == "not sent yet"
    chat.evaluate("at('prompt').value = ''; at('max_tokens').value = 4; at('prompt').focus()")
    say(chat, "Thanks.", 4)


def test_a_message_without_an_answer_is_kept_and_can_be_answered(
    chatting: Server, chat: Page
) -> None:
    with all_slots_taken(chatting):
        chat.type("What is 2 + 2?")
        chat.press("Enter")
        chat.wait_for("document.querySelectorAll('#chats .open').length === 1")
        reopen(chat)
        assert chat.evaluate(TEXTS) == ["What is 2 + 2?"]
    chat.evaluate("at('max_tokens').value = 24")
    chat.evaluate(f"{button('Answer')}.click()")
    chat.wait_for(f"{ANSWERED}2 && !document.querySelector('.busy')")
    assert chat.evaluate(TEXTS) == ["What is 2 + 2?", expected(chatting, "What is 2 + 2?")]


def test_a_message_that_exceeds_the_context_is_kept_and_can_be_replaced(chat: Page) -> None:
    long = "word " * 9000
    chat.type(long)
    chat.press("Enter")
    chat.wait_for("at('error').textContent.includes('tokens')")
    chat.wait_for("at('turns').children.length === 1")
    assert chat.evaluate(TEXTS) == [long]
    chat.evaluate("at('prompt').focus()")
    answer = say(chat, "Hi", 2)
    assert chat.evaluate(TEXTS) == ["Hi", answer]


def test_forbidden_actions_during_an_answer_are_explained(chat: Page) -> None:
    say(chat, "Hi", 2)
    begin_long_answer(chat, 4)
    for action in (
        "at('fresh').click()",
        "document.querySelector('.user .answer, .assistant .regenerate').click()",
        "document.querySelector('#chats .open').click()",
        "document.querySelector('#chats .delete').click()",
    ):
        chat.evaluate("at('error').textContent = ''")
        chat.evaluate(action)
        chat.wait_for("at('error').textContent.includes('Stop it first')")
        assert chat.evaluate("at('turns').children.length") == 4
    chat.press("Escape")
    chat.wait_for("at('end').hidden")
    assert chat.evaluate("at('error').textContent") == ""


def test_the_page_sends_the_system_message(chatting: Server, chat: Page) -> None:
    chat.evaluate("at('system').value = 'Answer in French.'")
    messages = [
        {"role": "system", "content": "Answer in French."},
        {"role": "user", "content": "Hello!"},
    ]
    assert say(chat, "Hello!", 2) == chatting.session.chat(messages, max_tokens=24).text


def test_the_page_stops_an_answer(chatting: Server, chat: Page) -> None:
    begin_long_answer(chat, 2)
    chat.press("Escape")
    chat.wait_for(f"at('end').hidden && {FIGURES}.includes('stopped')")
    assert chat.evaluate("at('error').textContent") == ""
    chat.wait_for(f"!!{button('Trace')}")
    while queue_load(chatting.session).n_running:
        pass
    chat.evaluate("at('max_tokens').value = 4; at('prompt').focus()")
    say(chat, "Thanks.", 4)


def test_the_view_follows_an_answer_until_the_user_scrolls_up(chat: Page) -> None:
    chat.resize(500, 420)
    chat.evaluate("at('max_tokens').value = 900; at('prompt').focus()")
    chat.type("Write a long story about a fox, in many paragraphs.")
    chat.press("Enter")
    chat.wait_for("at('answers').scrollHeight > at('answers').clientHeight + 400")
    assert chat.evaluate("at('to-end').hidden")
    chat.evaluate("at('answers').scrollTop = 0")
    chat.wait_for("!at('to-end').hidden")
    height = chat.evaluate("at('answers').scrollHeight")
    chat.wait_for(f"at('answers').scrollHeight > {height} + 60")
    assert chat.evaluate("at('answers').scrollTop") == 0
    chat.evaluate("at('to-end').click()")
    chat.wait_for("at('to-end').hidden && at('answers').scrollTop > 300")
    chat.press("Escape")
    chat.wait_for("at('end').hidden")


def test_shift_enter_adds_a_line(chat: Page) -> None:
    chat.type("one")
    chat.press("Enter", shift=True)
    chat.type("two")
    assert chat.evaluate("at('prompt').value") == "one\ntwo"


def test_settings_and_mode_survive_a_reload(chat: Page) -> None:
    chat.evaluate("at('show-settings').click()")
    chat.evaluate(
        "at('top_k').value = 7; at('top_k').dispatchEvent(new Event('input', {bubbles: true}))"
    )
    chat.evaluate("at('theme').value = 'dark'; at('theme').dispatchEvent(new Event('change'))")
    chat.press("Escape")
    chat.evaluate("document.querySelector('[value=compare]').click()")
    reload(chat)
    assert chat.evaluate("at('top_k').value") == "7"
    assert chat.evaluate("document.body.dataset.mode") == "compare"
    assert chat.evaluate("at('theme').value") == "dark"
    assert chat.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 26)"
