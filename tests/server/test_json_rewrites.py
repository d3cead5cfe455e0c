"""Texts of a conversation are drafted with JSON escapes, and JSON strings without. No token
changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prompts import MODULE
from serving import Server, serve_scripted
from session_options import Open
from specllama import Generation, SpecSession
from specllama.dialogue.json_rewrites import MOST_CHARACTERS, json_rewrites

# All characters that JSON escapes, and some that it does not.
MIXED = (
    'def größe(m²):\n\t"""The »size« \\ of 日本語: \N{ROCKET}."""\n'
    '\treturn {"a/b": m² * 2, \'c\': "\\n"}\r\n'
)


def said(content: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content}


def call(**arguments: Any) -> dict[str, Any]:
    function = {"name": "write", "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}


def test_plain_texts_become_strings() -> None:
    assert json_rewrites([said("plain")]) == ""
    assert json_rewrites([said("a\nb"), said("c"), said('say "d"')]) == ': "a\\nb"\n: "say \\"d\\""'
    assert json.loads(json_rewrites([said(MIXED)])[2:]) == MIXED
    # Invalid JSON is a text, even if it nests deeply.
    for text in ('{"a": "b\n', "[x]\n", "[" * 10_000 + "\n"):
        assert json.loads(json_rewrites([said(text)])[2:]) == text


def test_strings_become_plain_texts() -> None:
    assert json_rewrites([call(path="a.py", text=MIXED)]) == MIXED
    assert (
        json_rewrites([call(edits=[{"old": "a\nb"}, {"new": ["c\td", 1, None]}])]) == "a\nb\nc\td"
    )
    for result in ({"file": {"text": MIXED}, "size": 3}, ["x", MIXED]):
        for escaped in (True, False):
            content = json.dumps(result, ensure_ascii=escaped)
            quoted, plain = json_rewrites([said(content, "tool")]).split("\n", 1)
            assert json.loads(quoted[2:]) == content
            assert plain == MIXED


def test_only_the_last_texts_are_rewritten() -> None:
    messages = [said(f"{i}\n" * 1000) for i in range(100)]
    text = json_rewrites(messages)
    assert "99\\n99" in text
    assert '"0\\n0' not in text
    assert len(text) < MOST_CHARACTERS + 100
    assert json_rewrites([said("x\n"), said("y\n" * MOST_CHARACTERS)]).startswith(': "y\\n')
    # Half a surrogate pair cannot be encoded.
    assert json_rewrites([said('["a\\n\\ud800b"]', "tool")]).endswith("\na\nb")


def rounds(session: SpecSession, prompt: str, text: str, **options: Any) -> Generation:
    found = session.replay(prompt, text, **options)
    assert found.text == text
    return found


EDITED = MODULE.replace("offset", "place").replace("data too long", 'the "data" is \\ too long')


@pytest.mark.parametrize("text", [MODULE, EDITED, MIXED * 4], ids=["copied", "edited", "mixed"])
@pytest.mark.parametrize("to_json", [True, False], ids=["to json", "from json"])
def test_copies_continue_through_json_escapes(
    open_session: Open, smollm2: Path, text: str, to_json: bool
) -> None:
    """With a byte-pair tokenizer, on real text that the model copies."""
    session = open_session(smollm2, kv_type="f16", n_ctx=4096, spec_length=8)
    source = MODULE if text is EDITED else text
    if to_json:
        message = said(source, "tool")
        prompt, answer = f"{source}\n<tool_call>", json.dumps({"t": text}, ensure_ascii=False)
    else:
        message = call(text=source)
        prompt, answer = f"{json.dumps(source, ensure_ascii=False)}\n", text
    without = rounds(session, prompt, answer).stats
    told = rounds(session, prompt, answer, reference=json_rewrites([message])).stats
    assert told.rounds < 0.75 * without.rounds
    assert told.accepted > without.accepted


CONTENT = 'a\nb"c\\d\té'
ESCAPED = ["a", "\\n", "b", '\\"', "c", "\\\\", "d", "\\t", "é"]
TEMPLATE = (
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}{{ m.role }}"
    " {{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n'
    "</tool_call>{% endfor %}{% endfor %}{{ bos_token }}"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a model that writes CONTENT as an argument."""
    pieces = ["<tool_call>\n", '{"name": "note",', ' "arguments": {"t": "', *ESCAPED,
              '"}}', "\n</tool_call>"]  # fmt: skip
    models = {"note": {"pieces": pieces, "chat_template": TEMPLATE}}
    with serve_scripted(tmp_path_factory.mktemp("rewritten"), models) as found:
        yield found["note"]


NOTE: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "note",
        "parameters": {"type": "object", "properties": {"t": {"type": "string"}}},
    },
}


def ask(server: Server, *messages: Any, **more: Any) -> Any:
    return server.openai().chat.completions.create(
        model="m", messages=list(messages), temperature=0, **({"tools": [NOTE]} | more)
    )


def test_a_tool_call_is_drafted_from_a_message(server: Server) -> None:
    told = ask(server, said("u"), said(CONTENT))
    without = ask(server, said("u"), said("nothing\nof it"))
    for answer in (told, without):
        (one,) = answer.choices[0].message.tool_calls
        assert json.loads(one.function.arguments) == {"t": CONTENT}
    accepted = [one.usage.model_extra["accepted_tokens"] for one in (told, without)]
    assert accepted[0] >= accepted[1] + 6
    # The other endpoint drafts it, too.
    tool = {"type": "function", **NOTE["function"]}
    answers = [
        server.openai().responses.create(model="m", input=text, tools=[tool], temperature=0)
        for text in (CONTENT, "nothing\nof it")
    ]
    assert [json.loads(one.output[0].arguments) for one in answers] == [{"t": CONTENT}] * 2
    n = [one.usage.model_extra["accepted_tokens"] for one in answers]
    assert n[0] >= n[1] + 6


def test_a_given_prediction_is_kept(server: Server) -> None:
    prediction = {"type": "content", "content": '"t": "' + "".join(ESCAPED)}
    plain = said("nothing\nof it")
    with_it = ask(server, plain, prediction=prediction).usage.model_extra["accepted_tokens"]
    without = ask(server, plain).usage.model_extra["accepted_tokens"]
    assert with_it >= without + 6


def test_free_texts_get_no_json_rewrites(server: Server) -> None:
    """The script is the same, but its escapes are not drafted."""
    text = ask(server, said(CONTENT), tools=[])
    assert text.choices[0].message.content.count("\\n") == 1
    without = ask(server, said("nothing\nof it"), tools=[])
    assert text.usage.model_extra["accepted_tokens"] <= (
        without.usage.model_extra["accepted_tokens"] + 2
    )
