"""Thoughts are separated from the answer, with scripted models."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from serving import Server, serve_scripted
from specllama.dialogue.answer_parts import content, thoughts
from specllama.dialogue.thoughts import ThoughtReader
from specllama.model.chat_template import ChatTemplate
from specllama.model.thinking import Thinking
from tool_models import TOOLS

TAGS = Thinking("<think>", "</think>")
MESSAGES: list[Any] = [{"role": "user", "content": "u"}]
OPENED = "{% for m in messages %}{{ m.content }}{% endfor %}<think>"  # <think> is its first piece
MENTIONED = (
    "{% for m in messages %}{{ m.content.split('</think>')[-1] }}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n'
    "</tool_call>{% endfor %}{% endfor %}"
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{{ bos_token }}"
)
THOUGHT, SAID = "A number;\nsay one < 2.", "It is one."
CALL = ["<tool_call>", '\n{"name": "add", ', '"arguments": ', '{"a": 1, "b": 2}}', "\n</tool_call>"]
MODELS: dict[str, tuple[str, list[str], tuple[str, ...]]] = {
    "opened": (
        OPENED,
        ["<think>", "A number", ";\n", "say one", " < 2.\n", "</think>", "\n\nIt", " is one."],
        ("<think>",),
    ),
    "mentioned": (
        MENTIONED,
        ["<thi", "nk>", "\nA number;", "\nsay one <", " 2.\n</", "think>", "\n\nIt is ", "one."],
        (),
    ),
    "control": (
        "{# [THINK] #}{% for m in messages %}{{ m.content }}{% endfor %}{{ bos_token }}",
        ["[THINK]", "A number;\n", "say one <", " 2.", "[/THINK]", "It is ", "one."],
        ("[THINK]", "[/THINK]"),
    ),
    "calls": (
        MENTIONED,
        ["<think>", "\nA number;", "\nsay one < 2.", "\n</think>", "\n\n", *CALL],
        (),
    ),
    "empty": (MENTIONED, ["<think>", "\n\n", "</think>", " \n", "Hi."], ()),
    "drafts a call": (
        OPENED,
        ["<think>", "Shall I ", '{"name": "add", ', '"arguments": {}}', "? ", "</think>", *CALL],
        ("<think>",),
    ),
    "silent": (MENTIONED, ["It is", " one."], ()),
    "letters": (MENTIONED, ["a", "b", "c", "d"], ()),
}  # fmt: skip


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    models = {
        name: {"pieces": pieces, "control": control, "chat_template": template}
        for name, (template, pieces, control) in MODELS.items()
    }
    with serve_scripted(tmp_path_factory.mktemp("thinking"), models) as found:
        yield found


def answer(server: Server, **more: Any) -> dict[str, Any]:
    response = server.post(
        "/v1/chat/completions", {"messages": MESSAGES, "temperature": 0, "max_tokens": 300} | more
    )
    assert response.is_success, response.text
    return dict(response.json())


def message(server: Server, **more: Any) -> dict[str, Any]:
    return dict(answer(server, **more)["choices"][0]["message"])


def streamed(server: Server, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    text = server.post(path, {"stream": True, "temperature": 0} | body).text
    data = "data: "
    return [
        json.loads(line.removeprefix(data))
        for line in text.splitlines()
        if line.startswith(data + "{")
    ]


@pytest.mark.parametrize("opened", [False, True])
def test_a_thought_is_split_off_however_the_text_is_chunked(opened: bool) -> None:
    rng = random.Random(5)
    text = ("" if opened else " <think>") + "\n\nIt </thin is < so \n</think>\n\n Yes </think> no "
    for _ in range(300):
        reader = ThoughtReader(TAGS, opened=opened)
        cuts = sorted(rng.sample(range(len(text)), rng.randrange(12)))
        parts = []
        for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
            parts += reader.push(text[begin:end])
        parts += reader.finish()
        assert (thoughts(parts), content(parts)) == ("It </thin is < so", "Yes </think> no ")


def test_an_unfinished_thought_is_a_thought() -> None:
    for text, thought, said in (
        ("<think>\nso </thi", "so </thi", ""),
        ("<think> \n", "", ""),
        (" <thin", "", " <thin"),
        (" <thing> is", "", " <thing> is"),
        ("", "", ""),
    ):
        for size in (1, 3, 40):
            reader = ThoughtReader(TAGS, opened=False)
            pieces = [text[i : i + size] for i in range(0, len(text), size)]
            parts = [part for piece in pieces for part in reader.push(piece)] + reader.finish()
            assert (thoughts(parts), content(parts)) == (thought, said)


def test_text_is_held_back_only_while_a_tag_may_follow() -> None:
    reader = ThoughtReader(TAGS, opened=True)
    assert thoughts(reader.push("\nIt is")) == "It is"
    assert thoughts(reader.push(" <")) == ""
    assert thoughts(reader.push("b> so")) == " <b> so"
    assert content(reader.push("</think>\nYes")) == "Yes"
    assert content(reader.push("\n")) == "\n"


@pytest.mark.parametrize("name", ["opened", "mentioned", "control"])
def test_thoughts_become_reasoning_content(servers: dict[str, Server], name: str) -> None:
    whole = message(servers[name])
    assert (whole["reasoning_content"], whole["content"]) == (THOUGHT, SAID)
    events = streamed(servers[name], "/v1/chat/completions", {"messages": MESSAGES})
    deltas = [event["choices"][0]["delta"] for event in events]
    assert "".join(one.get("reasoning_content", "") for one in deltas) == THOUGHT
    assert "".join(one.get("content", "") for one in deltas) == SAID
    assert sum("reasoning_content" in one for one in deltas) > 2


def test_reasoning_tokens_are_counted(servers: dict[str, Server]) -> None:
    for name, n in (("opened", 5), ("mentioned", 5), ("control", 5), ("silent", 0)):
        usage = answer(servers[name])["usage"]
        assert usage["completion_tokens_details"]["reasoning_tokens"] == n


def test_an_answer_cut_in_a_thought_has_empty_content(servers: dict[str, Server]) -> None:
    whole = message(servers["opened"], max_tokens=2)
    assert (whole["reasoning_content"], whole["content"]) == ("A number;", "")


def test_answers_without_thoughts_have_no_reasoning_content(servers: dict[str, Server]) -> None:
    assert message(servers["silent"]) == {"role": "assistant", "content": SAID, "refusal": None}


def test_an_empty_thought_is_left_out(servers: dict[str, Server]) -> None:
    assert message(servers["empty"]) == {"role": "assistant", "content": "Hi.", "refusal": None}
    events = streamed(servers["empty"], "/v1/chat/completions", {"messages": MESSAGES})
    deltas = [event["choices"][0]["delta"] for event in events]
    assert "".join(one.get("content", "") for one in deltas) == "Hi."
    assert not any("reasoning_content" in one for one in deltas)
    # An answer that ends in its thought has no content.
    usage = answer(servers["empty"], stop="</think>")["usage"]
    assert usage["completion_tokens_details"]["reasoning_tokens"] <= usage["completion_tokens"]
    assert message(servers["empty"], max_tokens=1)["content"] == ""


def test_reasoning_format_none_leaves_thoughts_in_the_text(servers: dict[str, Server]) -> None:
    whole = message(servers["mentioned"], reasoning_format="none")
    assert whole["content"] == f"<think>\n{THOUGHT}\n</think>\n\n{SAID}"
    assert "reasoning_content" not in whole
    response = servers["silent"].post(
        "/v1/chat/completions", {"messages": MESSAGES, "reasoning_format": "loud"}
    )
    assert response.status_code == 400
    assert "reasoning_format" in response.json()["error"]["message"]


def test_a_tool_call_after_a_thought_is_found(servers: dict[str, Server]) -> None:
    whole = message(servers["calls"], tools=TOOLS)
    assert whole["reasoning_content"] == THOUGHT
    assert whole["content"] is None
    (call,) = whole["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"a": 1, "b": 2}


def test_a_schema_applies_after_the_thought(servers: dict[str, Server]) -> None:
    schema = {"type": "object", "properties": {"b": {"enum": [1, 2]}}, "required": ["b"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    thought = message(servers["opened"], response_format=wanted)
    assert thought["reasoning_content"] == THOUGHT
    assert list(json.loads(thought["content"])) == ["b"]
    # If the prompt does not open a thought, there is none.
    direct = message(servers["mentioned"], response_format=wanted)
    assert list(json.loads(direct["content"])) == ["b"]
    by_grammar = message(servers["opened"], grammar='root ::= "yes"')
    assert by_grammar == {"role": "assistant", "content": "yes", "refusal": None}


def test_a_required_tool_call_comes_after_the_thought(servers: dict[str, Server]) -> None:
    whole = message(servers["opened"], tools=TOOLS, tool_choice="required")
    assert whole["reasoning_content"] == THOUGHT
    assert [call["function"]["name"] for call in whole["tool_calls"]]
    # A call inside a thought is not a call.
    drafted = message(servers["drafts a call"], tools=TOOLS, tool_choice="required")
    assert drafted["reasoning_content"] == 'Shall I {"name": "add", "arguments": {}}?'
    (call,) = drafted["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"a": 1, "b": 2}


def test_responses_have_reasoning_items(servers: dict[str, Server]) -> None:
    server = servers["mentioned"]
    body = {"input": "u", "temperature": 0}
    whole = server.post("/v1/responses", body).json()
    thought, said = whole["output"]
    assert thought["type"] == "reasoning"
    assert thought["content"] == [{"type": "reasoning_text", "text": THOUGHT}]
    assert said["content"][0]["text"] == SAID
    assert whole["usage"]["output_tokens_details"]["reasoning_tokens"] == 5
    events = streamed(server, "/v1/responses", body)
    text = {"response.reasoning_text.delta": "", "response.output_text.delta": ""}
    for event in events:
        if event["type"] in text:
            text[event["type"]] += event["delta"]
    assert list(text.values()) == [THOUGHT, SAID]
    done = {event["type"]: event.get("text") for event in events}
    assert done["response.reasoning_text.done"] == THOUGHT
    ids = [one.pop("id") for one in (*whole["output"], *events[-1]["response"]["output"])]
    assert len(set(ids)) == 4
    assert events[-1]["response"]["output"] == whole["output"]
    # A client may send it back; the template does not show it.
    kept = [{"role": "user", "content": "u"}, thought, said, {"role": "user", "content": "v"}]
    assert server.post("/v1/responses", {**body, "input": kept}).is_success


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ x.split('</think>') }}", TAGS),
        ("[THINK]", Thinking("[THINK]", "[/THINK]")),
        ("x", None),
    ],
)
def test_thinking_tags_are_found_in_templates(template: str, expected: Thinking | None) -> None:
    found = ChatTemplate(template, bos="", eos="").thinking
    assert (found and (found.opening, found.closing)) == (
        expected and (expected.opening, expected.closing)
    )


SHOWN = (
    "{% for m in messages %}<{{ m.role }}>"
    "{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def test_rendering_continues_the_last_assistant_message() -> None:
    turns = [*MESSAGES, {"role": "assistant", "content": "It is"}]
    thought = [*MESSAGES, {"role": "assistant", "content": "It is", "reasoning_content": "so"}]
    plain = ChatTemplate(SHOWN, bos="", eos="")
    assert plain.render(MESSAGES) == "<user>u<assistant>"
    assert plain.render(turns) == "<user>u<assistant>It is"
    assert plain.render([*turns, *MESSAGES]) == "<user>u<assistant>It is<user>u<assistant>"
    mentioned = ChatTemplate(SHOWN + "{# <think> #}", bos="", eos="")
    assert mentioned.render(thought) == "<user>u<assistant><think>\nso\n</think>\n\nIt is"
    opened = ChatTemplate(SHOWN + "<think>", bos="", eos="")
    assert opened.render(turns) == "<user>u<assistant><think>\n\n</think>\n\nIt is"
    assert opened.render(thought) == "<user>u<assistant><think>\nso\n</think>\n\nIt is"
    whole = [*MESSAGES, {"role": "assistant", "content": "<think>\nso\n</think>\n\nIt is"}]
    assert mentioned.render(whole) == "<user>u<assistant><think>\nso\n</think>\n\nIt is"
    assert opened.render(whole) == "<user>u<assistant><think>so\n</think>\n\nIt is"


def test_an_answer_that_has_begun_is_continued(servers: dict[str, Server]) -> None:
    """The prompt ends with the text so far, which the scripted model continues."""
    begun = [*MESSAGES, {"role": "assistant", "content": "ab"}]
    prompt = servers["letters"].post("/apply-template", {"messages": begun}).json()["prompt"]
    assert prompt == "u<s>ab"
    assert message(servers["letters"], messages=begun)["content"] == "cd"


@pytest.mark.parametrize(
    ("end", "prompt"),
    [
        (r"<think>\n", "<user>u<assistant><think>\nso\n</think>\n\nIt is"),
        (r"<think>\n\n</think>\n\n", "<user>u<assistant><think>\n\n</think>\n\nIt is"),
    ],
)
def test_a_continued_thought_fits_the_tags_of_the_template(end: str, prompt: str) -> None:
    """The tag may be followed by white space, as in many templates."""
    template = ChatTemplate(SHOWN + "{{ '" + end + "' }}", bos="", eos="")
    thought = [*MESSAGES, {"role": "assistant", "content": "It is", "reasoning_content": "so"}]
    assert template.render(thought) == prompt


def test_an_assistants_greeting_is_not_continued() -> None:
    """An assistant's message at the beginning is complete."""
    greeting = [{"role": "assistant", "content": "Hello!"}]
    template = ChatTemplate(SHOWN, bos="", eos="")
    assert template.render(greeting) == "<assistant>Hello!<assistant>"


def test_a_rendered_prompt_sent_as_text_gets_one_bos(
    servers: dict[str, Server],
) -> None:
    """/apply-template leaves BOS out and /completion adds it, as in llama-server."""
    server = servers["letters"]
    prompt = server.post("/apply-template", {"messages": MESSAGES}).json()["prompt"]
    answer = server.post("/completion", {"prompt": prompt, "n_predict": 1, "temperature": 0})
    asked = {"messages": MESSAGES, "max_tokens": 1, "temperature": 0}
    counted = server.post("/v1/chat/completions", asked).json()["usage"]["prompt_tokens"]
    assert answer.json()["tokens_evaluated"] == counted
