"""A thought ends when its budget is used up. Scripted models give known texts; for real models, the
expected text is built from texts without a budget."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from prompts import PROMPTS
from scripted_model import EOS, FIRST, write_scripted_model
from serving import Server, serve
from session_options import EXACT, EXACT_HERE
from specllama import ArgumentError, DecodeError, SpecSession
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL

Open = Callable[..., SpecSession]
MESSAGES: list[Any] = [{"role": "user", "content": "u"}]
ASKED = "{% for m in messages %}{{ m.content }}{% endfor %}"
OPENED = ASKED + "<think>"
WRITTEN = ASKED + "{# </think> #}{{ bos_token }}"
SCRIPT = ("<think>", " A", " number", ";\n", "say", " one.", "</think>", "\n\nIt", " is")
CLOSING = "</think>"
REAL = {**EXACT, "exact": EXACT_HERE, "chat_template": OPENED}


@pytest.fixture
def scripted(tmp_path: Path, open_session: Open) -> Open:
    """Opens a model that generates a script."""

    def open_scripted(
        script: Sequence[str | bytes] = SCRIPT,
        draft: str | None = "ngram",
        *,
        control: tuple[str, ...] = ("<think>", CLOSING),
        template: str = OPENED,
        then: int | None = EOS,
    ) -> SpecSession:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.gguf"
        write_scripted_model(
            path, [*script], then=then, control=control, chat_template=template, any_text=True
        )
        return open_session(path, draft, kv_type="f16")

    return open_scripted


@pytest.mark.parametrize("draft", [None, "ngram"])
@pytest.mark.parametrize("budget", [0, 1, 3, 4, 5, 6, None, -1])
def test_budget_limits_a_thought_that_the_prompt_opened(
    scripted: Open, budget: int | None, draft: str | None
) -> None:
    session = scripted(draft=draft)
    n = 5 if budget in (None, -1) else min(budget or 0, 5)
    for _ in range(2):
        found = session.chat(MESSAGES, reasoning_budget=budget)
        said = session.detokenize(found.tokens, special=True)
        assert said == "".join(SCRIPT[1 : 1 + n]) + CLOSING + "\n\nIt is"
        assert found.finish_reason == "stop"


def test_budget_limits_a_thought_that_the_model_opened(scripted: Open) -> None:
    """The opening tag has several tokens and follows blanks; the closing tag has several, too."""
    script = ["\n", "<thi", "nk>\n", " A", " number", "."]
    session = scripted(script, control=(), template=WRITTEN)
    for budget in range(4):
        found = session.chat(MESSAGES, reasoning_budget=budget)
        assert found.text.startswith("".join(script[: 3 + budget]) + CLOSING)
    assert session.chat(MESSAGES, reasoning_budget=4).text == "".join(script)


@pytest.mark.parametrize("script", [["It", " is", " one"], ["<th", "ing>", " is"], ["\n", "<"]])
def test_texts_without_a_thought_are_not_limited(scripted: Open, script: list[str]) -> None:
    session = scripted(script, control=(), template=WRITTEN)
    assert session.chat(MESSAGES, reasoning_budget=0).text == "".join(script)


def test_budget_changes_nothing_for_models_without_thoughts(open_session: Open) -> None:
    session = open_session()
    expected = session.generate(PROMPTS["module"], max_tokens=20)
    found = session.generate(PROMPTS["module"], max_tokens=20, reasoning_budget=0)
    assert found.tokens == expected.tokens


def test_budget_ends_a_thought_only_between_characters(scripted: Open) -> None:
    script = ["<think>", "a", b"\xe2", b"\x82", b"\xac", "b", CLOSING, "It"]
    session = scripted(script)
    texts = [session.chat(MESSAGES, reasoning_budget=n).text for n in range(6)]
    euro = "a\N{EURO SIGN}"
    assert texts == ["It", "aIt", f"{euro}It", f"{euro}It", f"{euro}It", f"{euro}bIt"]


def test_budget_does_not_apply_inside_a_grammar(scripted: Open) -> None:
    """A grammar that constrains the thought has no limit. A lazy grammar, which waits for the
    closing tag, has one."""
    session = scripted()
    for grammar in (
        'root ::= " A" [a-z ]+ ";\\n" [a-z]+',
        'root ::= " A" [a-z <>/]+ ";\\n" [a-z]+',
    ):
        found = session.chat(MESSAGES, reasoning_budget=1, grammar=grammar)
        assert session.detokenize(found.tokens, special=True) == " A number;\nsay"
    grammar = f'root ::= "{CLOSING}" "yes"'
    found = session.chat(MESSAGES, reasoning_budget=2, grammar=grammar, grammar_triggers=CLOSING)
    assert session.detokenize(found.tokens, special=True) == f" A number{CLOSING}yes"


def test_a_tool_call_ends_a_thought_and_its_budget(scripted: Open) -> None:
    """The thought ends where the call begins, and so does its limit."""
    script = ["<think>", "hm", " (", '"a', " b", " c", '")']
    session = scripted(script, control=("<think>",))
    call: Any = {"grammar": r"""root ::= "(\"" [^"]* "\")" """, "grammar_triggers": "("}
    for budget in range(2, 8):
        found = session.chat(MESSAGES, reasoning_budget=budget, **call)
        assert found.text == 'hm ("a b c")'
    assert session.chat(MESSAGES, reasoning_budget=1, **call).text == f"hm{CLOSING}"


def test_a_closing_tag_that_has_begun_is_completed(scripted: Open) -> None:
    """If the model continues it."""
    script = ["<think>", " A", "</", "thin", "k>", "It", "<", "b", "<<", "<b"]
    session = scripted(script, control=("<think>",))
    for budget in range(2, 7):
        assert session.chat(MESSAGES, reasoning_budget=budget).text == "".join(script[1:])
    assert session.chat(MESSAGES, reasoning_budget=1).text.startswith(f" A{CLOSING}")
    session = scripted(["<think>", "</"], control=("<think>",), then=FIRST + 1)
    n_closing = len(session.tokenize(CLOSING, add_special=False))
    text = session.chat(MESSAGES, reasoning_budget=1, max_tokens=60).text
    assert text.endswith(CLOSING)
    assert len(text) < 4 * n_closing + len(CLOSING)


def test_budget_keeps_an_empty_thought_unchanged(scripted: Open) -> None:
    """One token both ends the opening tag and begins the closing tag."""
    script = ["<thi", "nk></", "think>", "It", " is", " one"]
    session = scripted(script, control=(), template=WRITTEN)
    for budget in range(4):
        assert session.chat(MESSAGES, reasoning_budget=budget).text == "".join(script)


def test_a_bias_that_forbids_the_closing_tag_overrides_the_budget(scripted: Open) -> None:
    session = scripted()
    (closing,) = session.tokenize(CLOSING, add_special=False)
    options: Any = {"logit_bias": {closing: float("-inf")}, "max_tokens": 5}
    plain = session.chat(MESSAGES, **options)
    assert session.chat(MESSAGES, reasoning_budget=1, **options).tokens == plain.tokens
    nothing = dict.fromkeys(range(session.n_vocab), float("-inf"))
    with pytest.raises(DecodeError):
        session.chat(MESSAGES, reasoning_budget=1, logit_bias=nothing)


def expected(plain: SpecSession, prompt: list[int], budget: int, options: Any) -> list[int]:
    """Build the expected text with a budget from texts without one."""
    closing = plain.tokenize(CLOSING, add_special=False)
    begin = plain.generate(prompt, max_tokens=budget, **options).tokens
    if CLOSING in plain.detokenize(begin):
        return plain.generate(prompt, max_tokens=budget + 30, **options).tokens
    rest = plain.generate([*prompt, *begin, *closing], max_tokens=30, **options)
    return [*begin, *closing, *rest.tokens]


@pytest.mark.parametrize("tree", ["off", 3])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafts_change_no_token_of_a_limited_thought(
    open_session: Open, temperature: float, tree: Any
) -> None:
    plain = open_session(BUNDLED_MODEL, None, **REAL)
    rng = random.Random(7)
    n_drafted = 0
    for draft in ("ngram", BUNDLED_DRAFT):
        session = open_session(BUNDLED_MODEL, draft, spec_tree=tree, **REAL)
        for name in ("module", "json", "function"):
            text = PROMPTS[name] + "<think>"
            prompt = [int(token) for token in plain.tokenize(text)]
            options: Any = {"temperature": temperature, "seed": rng.randrange(100)}
            budget = rng.randrange(1, 30)
            tokens = expected(plain, prompt, budget, options)
            options |= {"max_tokens": len(tokens), "reasoning_budget": budget}
            found = session.generate(text, **options)
            assert found.tokens == tokens
            n_drafted += found.stats.drafted
    assert n_drafted > 0


def test_budget_closes_the_thought_under_rejection_sampling(open_session: Open) -> None:
    session = open_session(BUNDLED_MODEL, BUNDLED_DRAFT, **REAL)
    closing = session.tokenize(CLOSING, add_special=False)
    for seed in range(3):
        found = session.generate(
            PROMPTS["module"] + "<think>", max_tokens=40, reasoning_budget=12,
            temperature=1.0, seed=seed, acceptance="rejection",
        )  # fmt: skip
        assert found.tokens[12 : 12 + len(closing)] == closing


def test_budget_limits_thoughts_of_a_served_target(open_session: Open) -> None:
    target = open_session(BUNDLED_MODEL, "ngram", n_seq=2, verifies=True, **REAL)
    text = PROMPTS["module"] + "<think>"
    options: Any = {"max_tokens": 40, "reasoning_budget": 9}
    local = target.generate(text, **options)
    with serve(target) as server:
        for draft in (None, "ngram", BUNDLED_DRAFT):
            with SpecSession(target=server.url, draft=draft, n_threads=1) as session:
                assert session.generate(text, **options).tokens == local.tokens


def asked(server: Server, path: str, **body: Any) -> Any:
    response = server.post(path, {"messages": MESSAGES, "temperature": 0, "max_tokens": 60} | body)
    assert response.is_success, response.text
    return response.json()


def test_server_fields_set_the_reasoning_budget(scripted: Open) -> None:
    session = scripted()
    with serve(session) as server:
        for name in ("reasoning_budget_tokens", "thinking_budget_tokens"):
            chat = asked(server, "/v1/chat/completions", **{name: 2})
            message = chat["choices"][0]["message"]
            assert (message["reasoning_content"], message["content"]) == ("A number", "It is")
        thinking = {"type": "enabled", "budget_tokens": 1}
        blocks = asked(server, "/v1/messages", thinking=thinking)["content"]
        assert [one.get("thinking", one.get("text")) for one in blocks] == ["A", "It is"]
        thinking["budget_tokens"] = 2**40
        blocks = asked(server, "/v1/messages", thinking=thinking)["content"]
        assert blocks[0]["thinking"] == "A number;\nsay one."
        schema = {"type": "json_schema", "json_schema": {"schema": {"enum": ["yes"]}}}
        chat = asked(
            server, "/v1/chat/completions", reasoning_budget_tokens=1, response_format=schema
        )
        message = chat["choices"][0]["message"]
        assert message["reasoning_content"] == "A"
        assert json.loads(message["content"]) == "yes"
        for wrong in (-2, 1.5, "x"):
            body = {"messages": MESSAGES, "reasoning_budget_tokens": wrong}
            refused = server.post("/v1/chat/completions", body)
            assert refused.status_code == 400
            assert "reasoning_budget_tokens" in refused.json()["error"]["message"]


def test_bad_budgets_are_refused(open_session: Open) -> None:
    session = open_session()
    for wrong in (-2, 1.5, "x", 2**31):
        with pytest.raises(ArgumentError, match="reasoning_budget"):
            session.generate("x", reasoning_budget=wrong)  # type: ignore[arg-type]
