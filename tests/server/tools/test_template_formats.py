"""The formats of calls and thoughts that are derived from llama.cpp's chat templates."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from chat_templates import (
    CONVERSATIONS,
    THOUGHT,
    TOOLS,
    WITH_TOOLS,
    answer_of,
    begin_of_calls,
    opened,
    parts_of,
    rendered,
    said_by,
)
from grammar_draws import longest, of_lark
from specllama.dialogue.answer_parts import calls, content, thoughts
from specllama.dialogue.tools.choice import ToolChoice
from specllama.dialogue.tools.grammar import AnswerGrammar
from tool_formats_table import document

DOCUMENT = Path(__file__).parents[3] / "docs/reference/tool_formats.md"
CHOICE = ToolChoice(TOOLS, TOOLS, True, True)

BY_MODEL = {"LFM2-8B-A1B", "LFM2.5-Instruct", "ibm-granite-granite-3.3-2B-Instruct"}
"""Templates that write no calls, of models whose format is known."""

FALLING_BACK = {"HuggingFaceTB-SmolLM3-3B"}
"""Its template shows only results of tools, so the model is asked for Hermes's format."""

UNCLOSED = "deepseek-ai-DeepSeek-R1-Distill-Llama-8B"
"""Its template closes the list of calls after the second call only."""


def some(name: str) -> list[str]:
    """Return the conversations that a template can write."""
    return [one for one in CONVERSATIONS if one != "two calls" or opened(name)[1].parallel]


def test_only_a_template_that_shows_no_tools_falls_back() -> None:
    sources = {name: opened(name)[1].source for name in WITH_TOOLS}
    assert {name for name, one in sources.items() if one == "model"} == BY_MODEL
    assert {name for name, one in sources.items() if one == "fallback"} == FALLING_BACK
    assert len(WITH_TOOLS) >= 63


@pytest.mark.parametrize("name", WITH_TOOLS)
@pytest.mark.parametrize("thought", ["", THOUGHT])
def test_calls_that_a_template_writes_are_read_back(name: str, thought: str) -> None:
    """As a whole, and character by character."""
    for one in some(name):
        made = CONVERSATIONS[one]
        text = rendered(name, made, thought)
        answer = answer_of(name, text)
        shown = thought if thought in text and opened(name)[0].thinking else ""
        for pieces in ([answer], list(answer)):
            assert said_by(parts_of(name, pieces)) == (shown, "", made)


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_the_grammar_accepts_what_the_template_writes(name: str) -> None:
    form = opened(name)[1]
    grammar = of_lark(AnswerGrammar().calls(CHOICE, form))
    shape = form.shapes[0]
    ending = (shape.closing.strip() or shape.tail.strip()).encode()
    for one in some(name):
        text = rendered(name, CONVERSATIONS[one], "")
        text = text[begin_of_calls(name, text) :]
        taken = text.encode()[: longest(grammar, text)]
        if name != UNCLOSED or one == "two calls":
            assert taken.rstrip().endswith(ending)
            assert len(taken) >= len(b"now\n{}")
            assert len(ending) < 2 or ending not in text.encode()[len(taken) :]
        for right, wrong in (("edit_file", "other_tool"), ("0.5", '"x"')):
            if right in text:
                assert longest(grammar, text.replace(right, wrong)) < len(taken) - len(ending)


def mutated(text: str, marks: list[str], rng: random.Random) -> str:
    """Return a text that is cut, reordered or reversed, or has more marks or odd characters."""
    at, to = sorted(rng.sample(range(len(text) + 1), 2))
    mark, odd = (
        rng.choice(marks),
        rng.choice(["\0", "\ufdd0", "é", "😀", "\u2028", "\\", '"', "'", "\n"]),
    )
    return rng.choice(
        [
            text[:at],
            text[at:],
            text[:at] + text[to:],
            text[:to] + text[at:],
            text.replace(mark, mark * 2),
            text.replace("make", mark),
            text.replace("def f", f"{mark} {odd}"),
            text[:at] + mark + text[at:],
            text[:at] + odd + text[at:],
            "".join(reversed(text)),
        ]
    )


@pytest.mark.parametrize("seed", range(300))
def test_mutated_answers_are_read_without_an_error(seed: int) -> None:
    """The chunks do not change the result, and it can be rendered again."""
    rng = random.Random(seed)
    name = WITH_TOOLS[seed % len(WITH_TOOLS)]
    template, form = opened(name)
    text = answer_of(name, rendered(name, CONVERSATIONS[rng.choice(some(name))], THOUGHT))
    text = mutated(text, [one for one in form.marks if one.strip()], rng)
    cuts = [0, *sorted(rng.choices(range(len(text) + 1), k=rng.randrange(1, 40))), len(text)]
    parts = parts_of(name, [text[a:b] for a, b in pairwise(cuts)])
    whole = parts_of(name, [text])
    for read in (content, thoughts):
        assert read(parts) == read(whole)
    made = calls(parts)
    assert [one["function"] for one in made] == [one["function"] for one in calls(whole)]
    message = {"role": "assistant", "content": content(parts), "reasoning_content": thoughts(parts)}
    if made:
        message |= {"tool_calls": made}
    results = [{"role": "tool", "tool_call_id": one["id"], "content": "!"} for one in made]
    given = form.conversation([{"role": "user", "content": "?"}, message, *results], TOOLS)
    assert template.render(given, form.template_args(TOOLS))


def test_the_table_in_the_documentation_matches_the_templates() -> None:
    """To update it: python tests/support/tool_formats_table.py > docs/reference/tool_formats.md"""
    assert DOCUMENT.read_text(encoding="utf-8") == document()


THOUGHTS = {
    "openai-gpt-oss-120b": ("<|channel|>analysis<|message|>", "<|end|>"),
    "google-gemma-4-31B-it": ("<|channel>thought", "<channel|>"),
    "Kimi-K3": ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    "MiniMax-M3": ("<mm:think>", "</mm:think>"),
    "Cohere2MoE": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "tencent-Hy3": ("<think:opensource>", "</think:opensource>"),
    "mistralai-Ministral-3-14B-Reasoning-2512": ("[THINK]", "[/THINK]"),
    "meta-llama-Llama-3.1-8B-Instruct": None,
}


@pytest.mark.parametrize("name", THOUGHTS)
def test_the_marks_of_thoughts_are_derived(name: str) -> None:
    found = opened(name)[0].thinking
    assert (found and (found.opening, found.closing)) == THOUGHTS[name]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("openai-gpt-oss-120b", "<|channel|>analysis<|message|>So.<|end|><|start|>assistant"
         "<|channel|>final<|message|>Hi.<|return|>", ("So.", "Hi.")),
        ("openai-gpt-oss-120b", "<|channel|>final<|message|>Hi.", ("", "Hi.")),
        ("Kimi-K3", "<|open|>think<|sep|>So.<|close|>think<|sep|><|open|>response<|sep|>Hi."
         "<|close|>response<|sep|>", ("So.", "Hi.")),
        ("Cohere2MoE", "<|START_THINKING|>So.<|END_THINKING|><|START_TEXT|>Hi.<|END_TEXT|>",
         ("So.", "Hi.")),
        ("google-gemma-4-31B-it", "<|channel>thought\nSo.<channel|>Hi.", ("So.", "Hi.")),
    ],
)  # fmt: skip
def test_marks_around_the_parts_of_an_answer_are_removed(
    name: str, text: str, said: tuple[str, str]
) -> None:
    for pieces in ([text], list(text)):
        assert said_by(parts_of(name, pieces)) == (*said, [])


def test_both_forms_of_gpt_oss_calls_are_read() -> None:
    name, given = "openai-gpt-oss-120b", '{"command": "ls"}<|call|>'
    json = "<|channel|>commentary to=functions.run <|constrain|>json<|message|>"
    for head in (json, " to=functions.run<|channel|>commentary json<|message|>"):
        text = "<|channel|>analysis<|message|>So.<|end|><|start|>assistant" + head + given
        for pieces in ([text], list(text)):
            assert said_by(parts_of(name, pieces)) == ("So.", "", [("run", {"command": "ls"})])


def test_texts_that_look_like_other_values_stay_texts() -> None:
    """If the marks do not decide, the parameter's schema does, not its value."""
    for name in ("Qwen3-Coder", "GLM-4.6", "MiniMax-M3", "google-gemma-4-31B-it", "Kimi-K3"):
        for value in ("7", "true", "null", "[1]", '{"a": 1}', "", " x ", "</x>", "'", '"'):
            made = [("run", {"command": value})]
            answer = answer_of(name, rendered(name, made, ""))
            for pieces in ([answer], list(answer)):
                assert said_by(parts_of(name, pieces))[2] == made


def test_text_parameters_are_streamed() -> None:
    answer = answer_of("Qwen3-Coder", rendered("Qwen3-Coder", [("run", {"command": "abcdef"})], ""))
    at = answer.index("cd")
    assert calls(parts_of("Qwen3-Coder", [answer[:at]]))[0]["function"]["arguments"] == (
        '{"command": "ab'
    )
