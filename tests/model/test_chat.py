"""Chats: the model's template, and the KV memory over several turns."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest
from scripted_model import BOS, FIRST
from specllama import ArgumentError, DecodeError, ModelError, SpecSession
from specllama._interrupt import Interrupt
from specllama.chat.chat import Chat
from specllama.model.chat_template import ChatTemplate

Open = Callable[..., SpecSession]
Script = Callable[..., Path]
PIECES = ["u", ":", "a", "b", "c", "d"]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'critic' %}{{ raise_exception('no critics') }}{% endif %}"
    "{{ m.content }}{% endfor %}{% if extra %}{{ extra }}{% endif %}"
)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


@pytest.fixture
def model(scripted: Script) -> Path:
    return scripted(PIECES, chat_template=TEMPLATE)


def test_chat_renders_messages_with_the_models_template(model: Path, open_session: Open) -> None:
    session = open_session(model, kv_type="f16")
    # BOS is written by the template, once.
    assert session.render_chat([user("u"), user("a")]) == [BOS, FIRST, FIRST + 2]
    answer = session.chat([user("u")])
    assert (answer.text, answer.finish_reason) == (":abcd", "stop")
    assert session.chat([user("u")], max_tokens=2).text == ":a"
    assert "".join(chunk.text for chunk in session.stream_chat([user("a")])) == "bcd"
    assert session.chat([user("u")], template_args={"extra": "b"}).text == "cd"


def test_bos_is_added_to_a_template_without_it(model: Path, open_session: Open) -> None:
    """BOS still comes first, because the model wants it in every text."""
    template = TEMPLATE.removeprefix("{{ bos_token }}")
    session = open_session(model, kv_type="f16", chat_template=template)
    assert session.render_chat([user("u"), user("a")]) == [BOS, FIRST, FIRST + 2]


def test_chats_run_in_an_event_loop(model: Path, open_session: Open) -> None:
    session = open_session(model, kv_type="f16")

    async def converse() -> tuple[str, str, str]:
        answer, other = await asyncio.gather(
            session.achat([user("u")]), session.achat([user("u")], template_args={"extra": "b"})
        )
        text = ""
        async with aclosing(session.astream_chat([user("a")])) as chunks:
            async for chunk in chunks:
                text += chunk.text
                if text == "bc":
                    break
        with pytest.raises(ArgumentError, match="messages is empty"):
            await session.achat([])
        return answer.text, other.text, text

    assert asyncio.run(converse()) == (":abcd", "cd", "bc")


def test_n_gives_several_choices_of_a_chat(model: Path, open_session: Open) -> None:
    session = open_session(model, kv_type="f16")
    two = session.chat([user("u")], n=2, seed=7).choices
    assert [one.text for one in two] == [":abcd"] * 2
    assert two[0].stats.seed == 7 != two[1].stats.seed
    both = session.submit_chat([user("u")], n=2, seed=7).choices
    assert [one.result().text for one in both] == [":abcd"] * 2
    later = asyncio.run(session.achat([user("u")], n=1, seed=7))
    assert later.choices == [later]
    assert later.text == ":abcd"
    with pytest.raises(ArgumentError, match="n must be from 1"):
        session.chat([user("u")], n=0)
    asked: Any = session
    with pytest.raises(TypeError, match=r"n_beams is an option of session\.beam_search"):
        asked.chat([user("u")], n_beams=2)
    with pytest.raises(TypeError, match=r"n_beams is an option of session\.beam_search"):
        asyncio.run(asked.achat([user("u")], n_beams=2))
    with pytest.raises(TypeError, match="n is an option of generate, chat and infill"):
        asked.stream_chat([user("u")], n=2)
    beams = session.beam_search(session.render_chat([user("u")]), n_beams=2, max_tokens=4)
    assert beams[0].text == ":abc"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (5, "template_args must map names to values, not 5"),
        ([], r"template_args must map names to values, not \[\]"),
        ({5: 1}, "template_args must have names, not 5"),
        ({"messages": []}, "template_args may not have messages, which is reserved"),
        ({"bos_token": 5}, "template_args may not have bos_token"),
    ],
)
def test_bad_template_arguments_are_refused(
    model: Path, open_session: Open, arguments: Any, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        open_session(model, kv_type="f16").chat([user("u")], template_args=arguments)


def test_later_chat_turns_reuse_the_kv_memory(model: Path, open_session: Open) -> None:
    session = open_session(model, kv_type="f16")
    first = session.chat([user("u")], max_tokens=3)
    turns = [user("u"), {"role": "assistant", "content": first.text}, user("a")]
    second = session.chat(turns)
    assert second.text == "bcd"
    # All that was said except the last token, which was not decoded.
    assert second.stats.reused_tokens == second.stats.prompt_tokens - 2


def test_a_model_without_a_template_cannot_chat(open_session: Open) -> None:
    with pytest.raises(ModelError, match="has no chat template; continue a text"):
        open_session().chat([user("hello")])


def test_a_broken_template_is_refused(scripted: Script, open_session: Open) -> None:
    session = open_session(scripted(PIECES, chat_template="{% if %}"), kv_type="f16")
    with pytest.raises(ModelError, match="chat template cannot be parsed"):
        session.chat([user("u")])


def test_chat_template_replaces_the_models_template(
    model: Path, open_session: Open, tmp_path: Path
) -> None:
    (path := tmp_path / "own.jinja").write_text(own := "{{ begin }}{{ messages[0].content }}")
    for given in (own, path):
        options = {"chat_template": given, "template_args": {"begin": "c"}}
        session = open_session(model, kv_type="f16", **options)
        assert session.chat_template.source == own
        assert session.render_chat([user("a")]) == [BOS, FIRST + 4, FIRST + 2]
        assert session.render_chat([user("a")], {"begin": "d"}) == [BOS, FIRST + 5, FIRST + 2]
    without = open_session(chat_template="{{ messages[0].content }}")  # its model has no template
    assert without.has_chat_template
    assert without.render_chat([user("def")]) == without.tokenize("def")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"chat_template": "chatml.jinja"},
            "chat_template has no Jinja in it; give the template, or",
        ),
        (
            {"chat_template": Path("/nowhere")},
            "/nowhere cannot be read: No such",
        ),
        (
            {"chat_template": Path(__file__).parent},
            "cannot be read: Is a dir",
        ),
        (
            {"chat_template": Path("/dev/zero")},
            "/dev/zero cannot be read: it is not a regular file",
        ),
        ({"chat_template": "{% if %}"}, r"^chat_template cannot be parsed: .*[^.]\.$"),
        ({"chat_template": 5}, "chat_template must be a str, not int"),
        ({"template_args": 5}, "template_args must map names to values, not 5"),
        ({"template_args": {"messages": []}}, "template_args may not have messages"),
    ],
)
def test_bad_chat_templates_are_refused(model: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        SpecSession(model, **options)


def test_message_contents_in_parts_are_joined(model: Path, open_session: Open) -> None:
    session = open_session(model, kv_type="f16")
    parts = [{"type": "text", "text": "u"}, {"type": "text", "text": "a"}]
    for content, text in ((parts, "u\na"), ([], "")):
        messages = [user("a"), {"role": "assistant", "content": content}, user("u")]
        alike = [user("a"), {"role": "assistant", "content": text}, user("u")]
        assert list(session.render_chat(messages)) == list(session.render_chat(alike))


def test_consecutive_turns_of_one_role_are_joined_if_the_template_requires(
    scripted: Script, open_session: Open
) -> None:
    """The template requires alternating roles; results of tools are not counted."""
    strict = (
        "{% set ns = namespace(n=0) %}{% for m in messages %}"
        "{% if m.role in ('user', 'assistant') and not m.tool_calls %}"
        "{% if (m.role == 'user') != (ns.n % 2 == 0) %}{{ raise_exception('no turn') }}{% endif %}"
        "{% set ns.n = ns.n + 1 %}{% endif %}{{ m.content }}{% endfor %}"
    )
    pieces = [*PIECES, "\n\n"]
    session = open_session(scripted(pieces, chat_template=strict), kv_type="f16")

    def read(*messages: dict[str, Any]) -> list[str]:
        tokens = session.render_chat(list(messages))
        return [pieces[token - FIRST] for token in tokens if token >= FIRST]

    answer = {"role": "assistant", "content": "b"}
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}
    result = {"role": "tool", "content": "c"}
    assert read(user("u"), user("a")) == ["u", "\n\n", "a"]
    assert read(user("u"), answer, answer, user("a")) == ["u", "b", "\n\n", "b", "a"]
    assert read(user("u"), call, result, user("a")) == ["u", "c", "\n\n", "a"]
    assert read(user("u"), call, result, answer, user("a")) == ["u", "c", "b", "a"]
    assert read(user("u"), user("a"), call, answer, user("a")) == ["u", "\n\n", "a", "b", "a"]
    with pytest.raises(ArgumentError, match=r"refuses these messages: no turn\.$"):
        read(answer, user("a"))


def test_a_tool_call_with_truncated_arguments_is_rendered(
    scripted: Script, open_session: Open
) -> None:
    """Such arguments are not JSON, and a template may read them as an object."""
    template = (
        "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
        "{% for k, v in c.function.arguments | items %}{{ k }}{% endfor %}:{% endfor %}{% endfor %}"
    )
    session = open_session(scripted(PIECES, chat_template=template), kv_type="f16")
    for arguments, tokens in (({"a": 1}, [0, 2, 1, 3]), ('{"a', [0, 1, 3])):
        call = {"id": "1", "function": {"name": "f", "arguments": arguments}}
        messages = [user("u"), {"role": "assistant", "content": "", "tool_calls": [call]}]
        found = session.render_chat([*messages, {"role": "tool", "content": "b"}])
        assert [token - FIRST for token in found if token >= FIRST] == tokens


@pytest.mark.parametrize("without", [{}, {"content": None}])
def test_templates_can_test_for_missing_content(
    scripted: Script, open_session: Open, without: dict[str, None]
) -> None:
    """Some templates recognise calls by that."""
    template = "{% for m in messages %}{{ 'u' if m.content is none else 'a' }}{% endfor %}"
    model = scripted(PIECES, chat_template=template.replace("m.content", "m.get('content')"))
    session = open_session(model, kv_type="f16")
    answer = {"role": "assistant", **without}
    assert session.render_chat([answer, user("b")]) == [BOS, FIRST, FIRST + 2]


def test_later_system_messages_move_to_the_front_if_the_template_requires(
    scripted: Script, open_session: Open
) -> None:
    """A strict template accepts them only at the beginning; another keeps them in place."""
    strict = (
        "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
        "{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
        "{% if m.role == 'critic' %}{{ raise_exception('no critics') }}{% endif %}"
        "{{ m.content }}{% endfor %}"
    )
    pieces = [*PIECES, "\n\n"]
    system = [{"role": "system", "content": text} for text in "cd"]
    messages = [system[0], user("u"), system[1], user("a")]
    tokens = {}
    for name, template in (("strict", strict), ("free", TEMPLATE)):
        model = scripted(pieces, chat_template=template)
        with open_session(model, kv_type="f16") as session:
            rendered = session.render_chat(messages)
            tokens[name] = [pieces[token - FIRST] for token in rendered if token >= FIRST]
            with pytest.raises(ArgumentError, match=r"(no critics|at the beginning)\.$"):
                session.render_chat([*messages, {"role": "critic", "content": "u"}])
    assert tokens == {"strict": ["c", "\n\n", "d", "u", "a"], "free": ["c", "u", "d", "a"]}


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "messages is empty"),
        ("u", "must be a list"),
        (user("u"), "must be a list"),
        (["u"], r"messages\[0\] must be like"),
        ([user("u"), {"content": "u"}], r"messages\[1\] must be like"),
        ([{"role": "critic", "content": "u"}], "refuses these messages: no critics"),
        ([user("u"), {"role": "usr", "content": "u"}], r"messages\[1\] has the role 'usr'"),
        ([{"role": 5, "content": "u"}], r"messages\[0\] has the role 5"),
        ([{"role": "user"}], r"messages\[0\] has no \"content\""),
        ([user("\ud800")], "surrogate"),
        ([{"role": "user", "content": 5}], r"messages\[0\] content must be a str, not int"),
        ([user([{"type": "file"}])], r"messages\[0\] content must have a text in each"),
        ([user([{"type": "image"}])], r"messages\[0\].content\[0\] is an image, but the model"),
        ([user([{"text": "\ud800"}])], "surrogate"),
    ],
)
def test_bad_messages_are_refused(
    model: Path, open_session: Open, messages: Any, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        open_session(model, kv_type="f16").chat(messages)


class Failing:
    """A model whose session always fails; `asked` has the messages it got."""

    def __init__(self, error: BaseException) -> None:
        self.session = self
        self.asked: list[str] = []
        self._error = error

    def stream_chat(self, messages: Any, **_: Any) -> Any:
        self.asked.append(messages[-1]["content"])
        raise self._error


@pytest.mark.parametrize("error", [ArgumentError("too long"), KeyboardInterrupt()])
def test_chat_removes_unanswered_messages(error: BaseException) -> None:
    chat = Chat(cast(Any, Failing(error)), None, {}, interactive=True, colored=False)
    with pytest.raises(type(error)):
        chat.ask("a question")
    assert chat.conversation.messages == []
    chat.conversation.ask("a question")
    chat.conversation.answer("an answer")
    before = chat.conversation.messages
    with pytest.raises(type(error)):
        chat.ask_again()
    assert chat.conversation.messages == before
    chat.conversation.take_back("assistant")
    with pytest.raises(type(error)):
        chat.ask_again()
    assert chat.conversation.messages == before[:1]
    chat.conversation.take_back("user")
    chat.conversation.answer("hello")
    assert not chat.ask_again()
    assert [one["content"] for one in chat.conversation.messages] == ["hello"]
    assert not Chat(cast(Any, None), None, {}, interactive=True, colored=False).ask_again()


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ArgumentError("too long"), "why?"),
        (DecodeError("no"), "a file\nwhy?"),
        (KeyboardInterrupt(), "a file\nwhy?"),
    ],
)
def test_chat_drops_the_files_of_a_refused_message(
    error: BaseException, again: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise every later message would be refused with them."""
    model = Failing(error)
    chat = Chat(cast(Any, model), None, {}, interactive=True, colored=False)
    chat.put_before("a file")
    for _ in range(2):
        with pytest.raises(type(error)):
            chat.ask("why?")
    assert model.asked == ["a file\nwhy?", again]
    n_said = capsys.readouterr().err.count("The message is refused, and its files are dropped.\n")
    assert n_said == (again == "why?")


def test_repeated_ctrl_c_raises_keyboard_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[bool] = []
    clock = [0.0]
    monkeypatch.setattr("specllama._interrupt.monotonic", lambda: clock[0])
    with Interrupt(lambda: ended.append(True), patience=0.2):
        for _ in range(3):  # a key held down for a moment
            os.kill(os.getpid(), signal.SIGINT)
        assert len(ended) == 3
        clock[0] = 0.3
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert len(ended) == 3


def test_joining_turns_keeps_tool_calls() -> None:
    strict = (
        "{% for m in messages %}{% if not loop.first and m.role == loop.previtem.role %}"
        "{{ raise_exception('no turn') }}{% endif %}[{{ m.role }}]{{ m.content }}"
        "{% for call in m.tool_calls or [] %}({{ call.id }}){% endfor %}{% endfor %}"
    )
    said = {"role": "assistant", "content": "b"}
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}
    result = {"role": "tool", "content": "c"}
    prompt = ChatTemplate(strict, bos="", eos="").render([user("u"), said, call, result])
    assert prompt == "[user]u[assistant]b(1)[tool]c"


def test_chat_adds_all_files_to_a_message_or_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a text")
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe")
    model = Failing(KeyboardInterrupt())
    chat = Chat(cast(Any, model), None, {}, interactive=True, colored=False)
    with pytest.raises(ArgumentError, match=r"b\.txt cannot be read"):
        chat.attach(str(tmp_path / "*.txt"))
    with pytest.raises(KeyboardInterrupt):
        chat.ask("why?")
    assert model.asked == ["why?"]
