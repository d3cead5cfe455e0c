"""The list of chats on the page: titles, search, export, import, and deleting."""

from __future__ import annotations

import json

import pytest
from browser import CHROMIUM, TEXTS, Page, reload
from chat_files import FORMAT, import_chats, turn

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="requires Chromium")

TITLES = "[...document.querySelectorAll('#chats .open')].map(e => e.textContent)"
SAVED = "window.saved"


CHATS = {
    "format": FORMAT,
    "chats": [
        {
            "chat": {"id": "1", "title": "Fruits", "time": 1000, "last": "c"},
            "turns": [
                turn("a", None, "user", "Name a fruit."),
                turn("b", "a", "assistant", "An **apple**."),
                turn("c", "a", "assistant", "A *quince*."),
            ],
            "traces": [{"id": "c", "html": '<div class="specllama-trace">t</div>'}],
        },
        {
            "chat": {"id": "2", "title": "Towns", "time": 2000, "last": "d"},
            "turns": [turn("d", None, "user", "Name a town.")],
            "traces": [],
        },
    ],
}


@pytest.fixture
def filled(page: Page) -> Page:
    """A page with two chats that captures downloads."""
    page.run("""
      URL.createObjectURL = blob => { window.saved = blob.text(); return "data:,"; };
      HTMLAnchorElement.prototype.click = function() { window.savedAs = this.download; };""")
    import_chats(page, CHATS)
    page.wait_for(f"{TITLES}.join() === 'Towns,Fruits'")
    # The model has no template, so this mode cannot be chosen.
    page.evaluate("document.body.dataset.mode = 'chat'")
    return page


def open_chat(page: Page, title: str) -> None:
    page.evaluate(f"document.querySelector('#chats .open[title={title}]').click()")
    page.wait_for(f"at('title').value === '{title}'")


def test_imported_chats_keep_their_versions(filled: Page) -> None:
    open_chat(filled, "Fruits")
    assert filled.evaluate(TEXTS) == ["Name a fruit.", "A *quince*."]
    assert filled.evaluate("document.querySelector('#turns em').textContent") == "quince"
    filled.evaluate("document.querySelector('.versions .previous').click()")
    filled.wait_for("document.querySelector('#turns strong')?.textContent === 'apple'")


def test_the_search_finds_titles_and_texts(filled: Page) -> None:
    for wanted, titles in (("QUINCE", "Fruits"), ("town", "Towns"), ("name", "Towns,Fruits")):
        filled.evaluate(f"at('search').value = '{wanted}'")
        filled.evaluate("at('search').dispatchEvent(new Event('input'))")
        filled.wait_for(f"{TITLES}.join() === '{titles}'")
    filled.evaluate("at('search').value = 'zzz'; at('search').dispatchEvent(new Event('input'))")
    filled.wait_for("at('none').textContent === 'No chats found.'")


def test_a_title_can_be_changed(filled: Page) -> None:
    open_chat(filled, "Fruits")
    filled.evaluate("at('title').focus(); at('title').select()")
    filled.type("<b>Trees</b>")
    filled.press("Enter")
    filled.wait_for(f"{TITLES}.includes('<b>Trees</b>')")
    reload(filled)
    filled.wait_for(f"{TITLES}.includes('<b>Trees</b>')")


def test_exported_chats_can_be_imported(filled: Page) -> None:
    filled.evaluate("at('export-all').click()")
    filled.wait_for("!!window.saved")
    saved = filled.evaluate(SAVED)
    assert filled.evaluate("window.savedAs") == "specllama chats.json"
    import_chats(filled, saved)
    filled.wait_for(f"{TITLES}.join() === 'Towns,Towns,Fruits,Fruits'")
    open_chat(filled, "Fruits")
    assert filled.evaluate(TEXTS) == ["Name a fruit.", "A *quince*."]
    fruits = next(one for one in json.loads(saved)["chats"] if one["chat"]["title"] == "Fruits")
    assert [one["html"] for one in fruits["traces"]] == ['<div class="specllama-trace">t</div>']


def test_a_chat_is_exported_as_markdown_and_imported_again(filled: Page) -> None:
    open_chat(filled, "Fruits")
    filled.evaluate("at('export-chat').click(); at('export-md').click()")
    filled.wait_for("!!window.saved")
    assert filled.evaluate(SAVED) == (
        "# Fruits\n\n## You\n\nName a fruit.\n\n## Assistant\n\nA *quince*.\n"
    )
    assert filled.evaluate("window.savedAs") == "Fruits.md"

    import_chats(filled, filled.evaluate(SAVED).replace("Fruits", "Again"), "Fruits.md")
    filled.wait_for(f"{TITLES}.includes('Again')")
    open_chat(filled, "Again")
    assert filled.evaluate(TEXTS) == ["Name a fruit.", "A *quince*."]


def test_markdown_without_a_chat_is_refused(filled: Page) -> None:
    import_chats(filled, "# Title\n\nSome text.\n", "notes.md")
    filled.wait_for("at('error').textContent.startsWith('The file does not begin with')")
    assert filled.evaluate(TITLES) == ["Towns", "Fruits"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("not JSON", "The file is not JSON"),
        ("[]", "The file has no specllama chats"),
        ('{"format": "specllama chats 1", "chats": [{}]}', "Chat 1 in the file is damaged."),
        (
            json.dumps(CHATS).replace('"user"', '"<script>"'),
            "Chat 1 in the file is damaged.",
        ),
    ],
)
def test_files_without_chats_are_refused(filled: Page, text: str, error: str) -> None:
    import_chats(filled, text)
    filled.wait_for(f"at('error').textContent.startsWith({error!r})")
    assert filled.evaluate(TITLES) == ["Towns", "Fruits"]


def test_turns_in_a_circle_do_not_hang_the_page(filled: Page) -> None:
    circle = {
        "chat": {"id": "1", "title": "Circle", "time": 3000, "last": "a"},
        "turns": [turn("a", "b", "user", "one"), turn("b", "a", "assistant", "two")],
    }
    import_chats(filled, CHATS | {"chats": [circle]})
    filled.wait_for(f"{TITLES}.includes('Circle')")
    open_chat(filled, "Circle")
    assert sorted(filled.evaluate(TEXTS)) == ["one", "two"]


def test_deleting_a_chat_can_be_undone_and_removes_its_data(filled: Page) -> None:
    open_chat(filled, "Fruits")
    filled.evaluate("document.querySelector('#chats li:last-child .delete').click()")
    filled.wait_for(f"{TITLES}.join() === 'Towns'")
    assert filled.evaluate("at('turns').children.length") == 0
    filled.wait_for("document.activeElement.textContent === 'Undo'")
    filled.press("Enter")
    filled.wait_for(f"{TITLES}.join() === 'Towns,Fruits'")
    open_chat(filled, "Fruits")
    assert filled.evaluate(TEXTS) == ["Name a fruit.", "A *quince*."]
    filled.evaluate("document.querySelector('#chats li:last-child .delete').click()")
    filled.wait_for(f"{TITLES}.join() === 'Towns'")
    reload(filled)
    filled.wait_for(f"{TITLES}.join() === 'Towns'")
    left = filled.run("""
      const {read} = await import("/page/database.js");
      return [(await read("turns", store => store.getAll())).length,
        (await read("traces", store => store.getAll())).length]""")
    assert left == [1, 0]


def test_full_storage_shows_an_error(filled: Page) -> None:
    open_chat(filled, "Fruits")
    filled.run("""
      IDBObjectStore.prototype.put = function() {
        this.transaction.abort();
        throw new DOMException("full", "QuotaExceededError");
      };
      at("title").value = "New";
      at("title").dispatchEvent(new Event("change"));""")
    filled.wait_for("at('error').textContent.includes('cannot store this chat')")


def test_a_change_in_another_tab_is_shown(filled: Page) -> None:
    open_chat(filled, "Fruits")
    filled.run("""
      const {read, change} = await import("/page/database.js");
      const {current} = await import("/page/conversation.js");
      await change(store => store("chats").put({...current(), title: "Elsewhere"}));
      new BroadcastChannel("specllama").postMessage(current().id);""")
    filled.wait_for("at('title').value === 'Elsewhere'")
