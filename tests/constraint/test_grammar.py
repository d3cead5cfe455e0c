"""Grammars and JSON schemas: texts follow them, and speculation changes no token."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import llama_cpp
import pytest
from processes import run_script
from specllama import ArgumentError, DecodeError, SpecSession, _core
from specllama.requests.options import sampling_options
from specllama.session import BUNDLED_DRAFT

Open = Callable[..., SpecSession]


CALLS = r"""
root ::= call ("; " call)*
call ::= name "(" (arg (", " arg)*)? ")"
name ::= [a-z] [a-z_]{0,9}
arg ::= name | [0-9]{1,3} | "\"" [a-zé ]{0,8} "\""
"""
CALL = r"[a-z][a-z_]{0,9}\((ARG(, ARG)*)?\)".replace(
    "ARG", r'([a-z][a-z_]{0,9}|[0-9]{1,3}|"[a-zé ]{0,8}")'
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "sizes": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 4},
        "kind": {"enum": ["file", "folder"]},
    },
    "required": ["name", "sizes", "kind"],
    "additionalProperties": False,
}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.8, "top_k": 40},
    {"temperature": 1.2},
    {"temperature": 1.0, "acceptance": "rejection", "min_p": 0.02},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_texts_follow_their_grammar(open_session: Open, settings: dict[str, Any]) -> None:
    n_finished = 0
    for draft in (None, "ngram", BUNDLED_DRAFT):
        session = open_session(draft=draft)
        for seed in range(12):
            options = settings | {"seed": seed, "grammar": CALLS, "max_tokens": 120}
            generation = session.generate("import os\n", **options)
            if generation.finish_reason == "stop":
                n_finished += 1
                assert re.fullmatch(f"{CALL}(; {CALL})*", generation.text), generation.text
            else:  # an unfinished text
                assert re.match(r"[a-z]", generation.text), generation.text
    assert n_finished > 0 or settings == {}  # greedy, the model may write calls without end


@pytest.mark.parametrize("settings", SETTINGS[:3])
def test_drafts_change_no_token_under_a_grammar(
    open_session: Open, settings: dict[str, Any]
) -> None:
    plain = open_session(draft=None)
    drafting = [open_session(draft=draft, spec_length=6) for draft in ("ngram", BUNDLED_DRAFT)]
    accepted = 0
    for seed in range(8):
        for which in ({"grammar": CALLS}, {"json_schema": SCHEMA}):
            options = settings | which | {"seed": seed, "max_tokens": 100}
            expected = plain.generate("x = ", **options)
            for session in drafting:
                generation = session.generate("x = ", **options)
                assert generation.tokens == expected.tokens
                assert generation.finish_reason == expected.finish_reason
                accepted += generation.stats.accepted
    assert accepted > 100


def test_greedy_texts_with_a_grammar_equal_llama_cpp_pythons(
    open_session: Open, bundled_model: Path
) -> None:
    llama = llama_cpp.Llama(
        str(bundled_model),
        n_ctx=512,
        type_k=llama_cpp.GGML_TYPE_Q8_0,
        type_v=llama_cpp.GGML_TYPE_Q8_0,
        flash_attn=True,
        n_gpu_layers=0,
        n_threads=1,
        verbose=False,
    )
    session = open_session()
    for prompt in ("import os\n", "def f(", "x = "):
        grammar = llama_cpp.LlamaGrammar.from_string(CALLS, verbose=False)
        answer: Any = llama.create_completion(
            prompt, max_tokens=60, temperature=0, grammar=grammar, repeat_penalty=1.0
        )
        ours = session.generate(prompt, max_tokens=60, grammar=CALLS)
        assert ours.text == answer["choices"][0]["text"]
    llama.close()


@pytest.mark.parametrize("schema", [SCHEMA, json.dumps(SCHEMA)])
def test_json_text_follows_its_schema(open_session: Open, schema: Any) -> None:
    session = open_session()
    for seed in range(10):
        generation = session.generate(
            "settings = ", json_schema=schema, temperature=1.0, seed=seed, max_tokens=300
        )
        assert generation.finish_reason == "stop"
        value = json.loads(generation.text)
        assert set(value) == {"name", "sizes", "kind"}
        assert len(value["name"]) <= 12
        assert 2 <= len(value["sizes"]) <= 4
        assert value["kind"] in ("file", "folder")


def test_a_text_that_the_grammar_cannot_continue_finishes_with_stop(open_session: Open) -> None:
    """Also where the token that ends a text is forbidden."""
    session = open_session()
    bias = {session._backend.eos: -math.inf, 0: -math.inf}
    for acceptance in ("coupled", "rejection"):
        for temperature in (0.0, 1.0):
            generation = session.generate(
                "x",
                grammar='root ::= "yes" | "no"',
                logit_bias=bias,
                temperature=temperature,
                acceptance=acceptance,
            )
            assert generation.text in ("yes", "no")
            assert generation.finish_reason == "stop"
    # The session can be used again.
    assert session.generate("import", max_tokens=3).stats.generated_tokens == 3


def test_a_grammar_of_the_empty_text_finishes_at_once(open_session: Open) -> None:
    generation = open_session().generate("x", grammar="root ::= ")
    assert (generation.text, generation.finish_reason) == ("", "stop")


def test_processed_logprobs_are_higher_than_raw_ones_under_a_grammar(open_session: Open) -> None:
    session = open_session()
    options: dict[str, Any] = {"grammar": 'root ::= "yes" | "no"', "temperature": 1.0, "seed": 1}
    raw = session.generate("x", logprobs=2, **options)
    processed = session.generate("x", logprobs=2, processed_logprobs=True, **options)
    assert raw.tokens == processed.tokens
    for a, b in zip(raw.logprobs, processed.logprobs, strict=True):
        assert b.logprob > a.logprob  # forbidden tokens have probability 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grammar": 'start ::= "a"'}, 'has no rule "root"'),
        ({"grammar": "root ::= missing"}, 'has no rule "missing"'),
        ({"grammar": ""}, 'has no rule "root"'),
        ({"grammar": "# nothing\n"}, 'has no rule "root"'),
        ({"grammar": 'root ::= "a"\0'}, r"the end of the line is missing before '\\x00'"),
        ({"grammar": 'root ::= "' + "a" * 65536 + '"'}, "The grammar has 65547 bytes; at most"),
        ({"grammar": "root ::= " + "(" * 65 + '"a"' + ")" * 65}, "nests more than 64 groups"),
        ({"grammar": "root ::= " + "(" * 30000}, "nests more than 64 groups"),
        ({"grammar": 'root ::= "a"' + "?" * 30000}, "nests too deep"),
        ({"grammar": 'root ::= "a"{99999999999999999999}'}, "at least 1000000000000000000 times"),
        ({"grammar": 'root ::= "a"{2001}'}, "at least 2001 times; .* at most 2000"),
        ({"grammar": 'root ::= "a"{3,2}'}, r"\{3,2\}; the upper bound must not be less"),
        ({"grammar": 'root ::= "\\U00110000"'}, "is not a character"),
        ({"grammar": "%llguidance {}\nstart: missing"}, "unknown name: "),
        ({"grammar": "%llguidance {}\nstart: " + "(" * 30000}, "too deeply nested"),
        ({"grammar": '%llguidance {}\nstart: "a"\0'}, "The grammar has a NUL"),
        ({"grammar": '%llguidance {}\nstart: "' + "a" * 262144 + '"'}, "at most 262144"),
        (
            {"grammar": "%llguidance {}\nstart: T\nT: " + " & ".join(["/a.*b/"] * 30)},
            "more than 8 expressions that the same text must match",
        ),
        ({"regex": "(a"}, "unclosed group"),
        ({"regex": "a", "grammar": 'root ::= "a"'}, "one of grammar, json_schema and regex"),
        ({"regex": 3}, "regex must be a str, not int"),
        ({"grammar": 3}, "grammar must be a str, not int"),
        ({"grammar": "root ::= \ud800"}, "lone surrogate"),
        ({"grammar": 'root ::= "a"', "json_schema": {}}, "one of grammar, json_schema and regex"),
        ({"json_schema": 3}, "json_schema must be a JSON object, not 3"),
        ({"json_schema": False}, "json_schema must be a JSON object, not False"),
        ({"json_schema": "{"}, "json_schema is not valid JSON"),
        ({"json_schema": "[" * 100_000}, "json_schema is not valid JSON: it nests too deep"),
        ({"json_schema": "[1]"}, "json_schema must be a JSON object"),
    ],
)
def test_bad_grammars_are_refused_with_one_sentence(
    open_session: Open,
    options: dict[str, Any],
    message: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    session = open_session()
    with pytest.raises(ArgumentError, match=message):
        session.generate("x", **options)
    assert capfd.readouterr().err == ""  # llama.cpp's own complaint is part of the message
    assert session.generate("import", max_tokens=2).stats.generated_tokens == 2


def test_a_long_rule_can_be_repeated_often(open_session: Open) -> None:
    grammar = 'root ::= ("' + "ab" * 300 + '"){2000}\nname ::= "' + "a" * 600 + '"'
    assert open_session().generate("x", grammar=grammar, max_tokens=4).text in "ab" * 9


def test_several_threads_can_parse_grammars_at_once(open_session: Open) -> None:
    sessions = [open_session(draft=None, n_threads=1) for _ in range(3)]

    def read_many(session: SpecSession) -> list[str]:
        words = (f"yes{i}" for i in range(40))
        return [session.generate("x", grammar=f'root ::= "{one}"').text for one in words]

    with ThreadPoolExecutor() as pool:
        for found in pool.map(read_many, sessions):
            assert found == [f"yes{i}" for i in range(40)]


def test_a_grammar_for_a_replayed_text_is_refused(open_session: Open) -> None:
    session = open_session()
    options = _core.GenerateOptions(
        max_tokens=8,
        stop=[],
        sampling=sampling_options(grammar='root ::= "x"+'),
        reference=[],
        replayed=session.tokenize("def foo"),
        generated=[],
        cache_prompt=True,
        draft=None,
        trace=False,
    )
    with pytest.raises(ArgumentError, match="replayed text cannot follow a grammar"):
        session._backend.start(session.tokenize("abc"), options)
    assert session.generate("import", max_tokens=2).stats.generated_tokens == 2


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= "a" root "b" | "a" root "c" | ""',
        'root ::= ("a"+)*',
        'root ::= (((("a"?){9}){9}){9}){9}',
        'root ::= ((("a"{0,20}){0,20}){0,20}){0,20}',
        'root ::= root "a" | "a"',
        'root ::= e root "a" | "a"\ne ::= f\nf ::= "c" | ""',
    ],
)
def test_ambiguous_grammars_are_followed(open_session: Open, grammar: str) -> None:
    """The number of parses of a text may double with each character."""
    session = open_session()
    bias = {session.tokenize("a", add_special=False)[0]: 50.0}
    found = session.generate("x", grammar=grammar, logit_bias=bias, max_tokens=60)
    assert set(found.text) == {"a"}
    assert session.generate("import", max_tokens=2).stats.generated_tokens == 2


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= (("a"{1,1000}){1,1000}){1,1000}',
        "%llguidance {}\nstart: " + " | ".join(f'"aaaaa{i}" "x"' for i in range(6000)),
    ],
)
def test_a_grammar_that_becomes_too_complex_ends_its_request_only(
    open_session: Open, grammar: str
) -> None:
    """The text so far is kept, and the session can be used again."""
    session = open_session()
    bias = {session.tokenize("a", add_special=False)[0]: 50.0}
    with pytest.raises(DecodeError, match="The grammar became too complex to follow"):
        session.generate("x", grammar=grammar, logit_bias=bias, max_tokens=99)
    assert set(session.last.text) <= {"a"}
    assert session.generate("import", max_tokens=2).stats.generated_tokens == 2


def test_long_chains_of_rules_do_not_overflow_the_stack() -> None:
    """In a process of its own, which may crash."""
    code, said, complaint = run_script("""
from specllama import SpecSession
steps = [f"r{i}: r{i + 1}" for i in range(15000)]
grammar = "\\n".join(["%llguidance {}", "start: r0", *steps, 'r15000: "a"'])
print(SpecSession(draft=None, n_threads=1).generate("x", grammar=grammar).text)
""")
    assert (code, said, complaint) == (0, "a\n", "")


def test_without_llguidance_a_grammar_is_refused() -> None:
    """Everything else works. If llguidance is installed, it is mapped once."""
    code, said, complaint = run_script("""
import pathlib, specllama
from specllama import _core, _llama
session = specllama.SpecSession(draft=None, n_threads=1)
for path in ("", "/nowhere/_lib.so"):
    _core.set_llguidance_path(path)
    try:
        session.generate("x", regex="a")
    except specllama.ArgumentError as error:
        print(error)
_core.set_llguidance_path(_llama.llguidance_path())
import llguidance
print(session.generate("x", regex="ab").text)
maps = pathlib.Path("/proc/self/maps")
if maps.exists():
    lines = [line.split() for line in maps.read_text().splitlines()]
    assert len({line[4] for line in lines if "llguidance" in line[-1]}) == 1
""")
    assert (code, complaint) == (0, "")
    missing, broken, text = said.splitlines()
    assert missing.startswith(
        "Grammars and schemas need llguidance, which is not installed; run: pip"
    )
    assert broken.startswith("llguidance cannot be loaded: /nowhere/_lib.so: ")
    assert text == "ab"


def test_schemas_that_nest_too_deep_are_refused(open_session: Open) -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(5000):
        schema = {"type": "array", "items": schema}
    with pytest.raises(ArgumentError, match=r"nests too deep|at most 65536"):
        open_session().generate("x", json_schema=schema)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_lazy_grammar_begins_at_its_trigger_and_drafts_change_no_token(
    open_session: Open, settings: dict[str, Any]
) -> None:
    """After the first parenthesis whose token fits the grammar, no small letters follow."""
    plain = open_session(draft=None)
    drafting = [open_session(draft=draft, spec_length=6) for draft in ("ngram", BUNDLED_DRAFT)]
    lazy: dict[str, Any] = {"grammar": 'root ::= "(" [^a-z]*', "grammar_triggers": ["(", "[["]}
    n_held = accepted = 0
    prompts = ["def f", "x = (1, 2)\ny = ", "print", "import os\n", "LIMITS = (", "assert max"]
    rejects = settings.get("acceptance") == "rejection"
    # Random texts differ between processors, so generate until one opens a parenthesis.
    for seed, prompt in enumerate(prompts * 10 if rejects else prompts):
        if rejects and n_held > 0:
            break
        options = settings | lazy | {"seed": seed, "max_tokens": 60}
        expected = plain.generate(prompt, **options)
        text = expected.text
        held = re.search(r"\([^a-z]{8,}$", text)
        assert held or "(" not in text[:-8], text
        n_held += bool(held)
        if rejects:
            continue
        for session in drafting:
            generation = session.generate(prompt, **options)
            assert generation.tokens == expected.tokens
            accepted += generation.stats.accepted
    assert n_held > 0
    assert accepted > 10 or settings.get("acceptance") == "rejection"


def test_a_lazy_grammar_without_its_trigger_changes_nothing(open_session: Open) -> None:
    session = open_session()
    free = session.generate("def f", max_tokens=40)
    lazy = session.generate("def f", max_tokens=40, grammar='root ::= "x"', grammar_triggers="@@@@")
    assert lazy.tokens == free.tokens
    held = session.generate("def f", max_tokens=9, grammar='root ::= "x"', grammar_triggers=[])
    assert held.text == "x"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grammar_triggers": "x"}, "need a grammar"),
        ({"grammar": 'root ::= "x"', "grammar_triggers": [""]}, "grammar_triggers is empty"),
        ({"grammar": 'root ::= "x"', "grammar_triggers": ["a\0"]}, "NUL"),
        ({"grammar": 'root ::= "x"', "grammar_triggers": ["y" * 5000]}, "4096 bytes"),
        ({"grammar": 'root ::= "x"', "grammar_triggers": ["y" * 4000] * 20}, "65536 bytes"),
        ({"grammar": 'root ::= "x"', "grammar_triggers": ["y"] * 1025}, "at most 1024"),
        ({"grammar": 'root ::= "x"', "grammar_triggers": 5}, "grammar_triggers must be a str"),
    ],
)
def test_bad_triggers_are_refused(
    open_session: Open, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        open_session().generate("x", **options)
