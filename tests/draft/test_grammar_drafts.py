"""Drafts of text that a grammar forces or nearly forces: the tokens are the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prompts import MODULE
from real_models import real_model
from rewriting import write_quantized
from schemas import NUMBER, SCHEMAS, record
from scripted_model import BOS, FIRST
from serving import serve
from session_options import EXACT_HERE, Open
from specllama import Drafter, Generation, SpecSession
from specllama.session import BUNDLED_DRAFT

Script = Callable[..., Path]


class Nothing(Drafter):
    """Drafts nothing, so that only the grammar does."""

    def propose(self, sequence: int, tokens: Any, max_tokens: int) -> list[int]:
        return []


@pytest.fixture(scope="module")
def smollm2_q8_0(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2 in Q8_0, which gives the same bits at every width."""
    return write_quantized(smollm2, tmp_path_factory.mktemp("q8_0") / "smollm2.gguf", "q8_0")


def by_grammar(generation: Generation) -> tuple[int, int]:
    assert generation.stats.drafter_errors == 0, generation.stats.last_drafter_error
    return generation.stats.by_drafter["grammar"]


def compare(plain: SpecSession, drafting: list[SpecSession], **options: Any) -> tuple[int, int]:
    """Check that all give the same tokens; return how many of the grammars' tokens were drafted and
    accepted, forced ones included."""
    drafted = accepted = 0
    for name, schema in SCHEMAS.items():
        own = options | {"json_schema": schema, "seed": 3}
        expected = plain.generate("records = ", **own)
        assert expected.stats.exact
        assert expected.stats.drafted == 0
        for session in drafting:
            found = session.generate("records = ", **own)
            assert found.tokens == expected.tokens, name
            assert found.finish_reason == expected.finish_reason
            if found.finish_reason == "stop":
                json.loads(found.text, strict=False)
            n, right = by_grammar(found)
            drafted += n + found.stats.forced
            accepted += right + found.stats.forced
    return drafted, accepted


@pytest.mark.parametrize(
    "sampling",
    [{}, {"temperature": 0.9}, {"temperature": 0.7, "top_k": 20, "repeat_penalty": 1.1}],
)
def test_grammar_drafts_change_no_token(open_session: Open, sampling: dict[str, Any]) -> None:
    sessions = [
        open_session(draft=draft, spec_length=n)
        for draft, n in (("ngram", 4), ("ngram", 16), (BUNDLED_DRAFT, 6), (Nothing(), 8))
    ]
    plain = open_session(draft=None)
    drafted, accepted = compare(plain, sessions, max_tokens=60, **sampling)
    assert drafted > 400
    assert accepted > 0.3 * drafted  # a grammar forces much of code and little of JSON


def test_grammar_drafts_change_no_token_with_byte_pair_tokens(
    open_session: Open, smollm2_q8_0: Path
) -> None:
    plain = open_session(smollm2_q8_0, None)
    drafted, accepted = compare(plain, [open_session(smollm2_q8_0, spec_length=8)], max_tokens=24)
    assert drafted > 40
    assert accepted > 0.4 * drafted


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.8}])
def test_grammar_drafts_change_no_token_of_qwen(
    open_session: Open, tmp_path: Path, sampling: dict[str, Any]
) -> None:
    model = write_quantized(real_model("qwen-0.5b"), tmp_path / "qwen.gguf", "q8_0")
    plain = open_session(model, None, n_ctx=512)
    drafting = open_session(model, spec_length=8, n_ctx=512)
    drafted, accepted = compare(plain, [drafting], max_tokens=48, **sampling)
    assert drafted > 60
    assert accepted > 0.7 * drafted


def test_rejection_sampling_stays_within_the_grammar(open_session: Open) -> None:
    options: dict[str, Any] = {"acceptance": "rejection", "temperature": 1.0, "max_tokens": 150}
    for draft in ("ngram", BUNDLED_DRAFT):
        session = open_session(draft=draft, spec_length=6)
        accepted = 0
        for seed in range(6):
            schema = SCHEMAS["records"]
            found = session.generate("x = ", json_schema=schema, seed=seed, **options)
            accepted += by_grammar(found)[1] + found.stats.forced
            if found.finish_reason == "stop":
                assert 3 <= len(json.loads(found.text, strict=False)) <= 4
        assert accepted > 20


def test_the_planner_accepts_grammar_drafts(open_session: Open) -> None:
    """On every machine: a decode of a few tokens never takes several times as long as one of one
    token."""
    session = open_session(spec_length="auto")
    accepted = 0
    for seed in range(4):
        options = {"json_schema": SCHEMAS["records"], "seed": seed, "max_tokens": 80}
        found = session.generate("x = ", **options)
        accepted += by_grammar(found)[1] + found.stats.forced
    assert accepted > 0


def test_several_requests_get_their_own_grammar_drafts(open_session: Open) -> None:
    session = open_session(n_seq=3, n_ctx=256, spec_length=5, exact=EXACT_HERE)
    plain = open_session(draft=None)
    names = ["record", "nested", "records", "any bytes", "either"]
    requests = [("x = ", {"json_schema": SCHEMAS[name], "max_tokens": 60}) for name in names]
    accepted = 0
    handles = [session.submit(prompt, **options) for prompt, options in requests]
    for handle, (prompt, options) in zip(handles, requests, strict=True):
        found = handle.result()
        assert found.tokens == plain.generate(prompt, **options).tokens
        accepted += by_grammar(found)[1] + found.stats.forced
    assert accepted > 10


def test_the_server_drafts_from_json_schemas(open_session: Open) -> None:
    schema = record(temperature_in_degrees_celsius=NUMBER)
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    with serve(open_session()) as server:
        answer = server.openai().completions.create(
            model="test",
            prompt="x = ",
            temperature=0,
            max_tokens=40,
            extra_body={"response_format": wanted},
        )
        metrics = server.get("/metrics").text.splitlines()
    assert answer.choices[0].text.startswith("{")
    (accepted,) = (line for line in metrics if 'accepted_tokens_total{drafter="grammar"}' in line)
    assert int(accepted.split()[1]) > 0


ALL_BYTES = [bytes([byte]) for byte in range(1, 256)]


def scripted_session(
    scripted: Script, open_session: Open, pieces: list[str | bytes], **options: Any
) -> Iterator[SpecSession]:
    """Open sessions of a model that generates these pieces and has a token for every byte."""
    others = [byte for byte in ALL_BYTES if byte not in pieces]
    path = scripted(pieces, others=others, **options)
    for draft in (None, Nothing()):
        yield open_session(path, draft, spec_length=8)


def test_characters_of_several_tokens_are_drafted_whole(
    scripted: Script, open_session: Open
) -> None:
    """In a SentencePiece vocabulary, a character may have several tokens."""
    pieces = ["[", "na", "me", b"\xe2", b"\x82", b"\xac", ": ", b"\x37", "]"]
    plain, drafting = scripted_session(scripted, open_session, pieces)
    options: dict[str, Any] = {"grammar": 'root ::= "[name€: " [0-9] "]"', "max_tokens": 20}
    expected = plain.generate([BOS], **options)
    assert expected.text == "[name€: 7]"
    found = drafting.generate([BOS], trace=True, **options)
    assert found.tokens == expected.tokens == list(range(FIRST, FIRST + len(pieces)))
    # All between the first bracket and the digit; and the last bracket.
    assert by_grammar(found) == (7, 7)
    first = found.trace.rounds[1].draft
    assert [one.token for one in first] == found.tokens[1:7]
    assert [one.length for one in first] == [7, 5, 4, 3, 2, 0]
    assert all(one.confidence == 1 for one in first)


def test_a_text_that_may_end_is_drafted_without_the_end(
    scripted: Script, open_session: Open
) -> None:
    """The end of a text is not drafted, and a text that may end is not forced to continue."""
    plain, drafting = scripted_session(scripted, open_session, ["ab", "cd", "ef", "gh"])
    for grammar, drafted in (('root ::= "abcd" ("efgh")?', 1), ('root ::= "abcdefgh"', 3)):
        expected = plain.generate([BOS], grammar=grammar, max_tokens=9)
        found = drafting.generate([BOS], grammar=grammar, max_tokens=9)
        assert found.tokens == expected.tokens == list(range(FIRST, FIRST + 4))
        assert found.finish_reason == expected.finish_reason == "stop"
        assert by_grammar(found)[1] >= drafted


def test_a_draft_with_another_tokenization_of_forced_text_changes_no_token(
    scripted: Script, open_session: Open
) -> None:
    """The model tokenizes forced text differently: the drafts are wrong, not the text."""
    pieces = ["<", b"a", b"b", b"c", b"d", "abcd", ">"]
    plain, drafting = scripted_session(scripted, open_session, pieces, then=None)
    bias = {FIRST + 5: -1e9}  # never the word
    for options in ({}, {"logit_bias": bias}):
        grammar = 'root ::= "<" ("abcd")+ ">"'
        expected = plain.generate([BOS], grammar=grammar, max_tokens=30, **options)
        found = drafting.generate([BOS], grammar=grammar, max_tokens=30, **options)
        assert found.tokens == expected.tokens
        assert by_grammar(found)[0] > 0


def test_the_formatting_of_repeated_records_is_drafted(
    scripted: Script, open_session: Open
) -> None:
    """Where white space is optional, records are drafted with the white space of the first one."""
    pieces = ["{", "a", ":", " ", "1", "}"]
    plain, drafting = scripted_session(scripted, open_session, pieces, then=None)
    grammar = r'root ::= ("{a" " "? ":" [ \n]? [0-9] "}"){1,4}'
    expected = plain.generate([BOS], grammar=grammar, max_tokens=40)
    assert expected.text == "{a: 1}" * 4
    found = drafting.generate([BOS], grammar=grammar, max_tokens=40, trace=True)
    assert found.tokens == expected.tokens
    habits = [one for round in found.trace.rounds for one in round.draft if one.confidence < 1]
    assert len(habits) > 4
    assert "last token in such a context" in found.trace.to_html()
    n, right = by_grammar(found)
    assert right > 0.8 * n


def test_formatting_of_earlier_requests_is_drafted(scripted: Script, open_session: Open) -> None:
    """The formatting of one text is drafted in the next from its first key on."""
    pieces = ["{", "a", ":", " ", "1", "}"]
    _, drafting = scripted_session(scripted, open_session, pieces, then=None)
    grammar = r'root ::= "{a" " "? ":" [ \n]? [0-9] "}"'
    first, second = (
        drafting.generate([BOS], grammar=grammar, max_tokens=40, trace=True) for _ in range(2)
    )
    assert first.text == second.text == "{a: 1}"
    n_habits = [
        sum(one.confidence < 1 for round in done.trace.rounds for one in round.draft)
        for done in (first, second)
    ]
    assert n_habits[0] == 0 < n_habits[1]
    assert second.stats.rounds < first.stats.rounds


def test_a_match_continues_a_grammar_draft(open_session: Open) -> None:
    # The model would write this text in the same tokens.
    grammar = r'root ::= "import sys\n" [^\x00]*'
    for draft, others in (("ngram", {"match"}), (BUNDLED_DRAFT, {"model"})):
        found = open_session(draft=draft, spec_length=24).generate(
            MODULE + "\n\nimport os\n", grammar=grammar, max_tokens=30, trace=True
        )
        assert by_grammar(found)[1] > 0
        drafts = [
            [one.drafter for one in round.draft] for round in found.trace.rounds if round.draft
        ]
        assert any(draft[0] == "grammar" and draft[-1] in others for draft in drafts)


def test_a_long_literal_takes_fewer_rounds(open_session: Open) -> None:
    literal = "".join(f"{i} mod 7 is {i % 7}; " for i in range(100))
    grammar = f'root ::= "{literal}"'
    plain, drafting = open_session(draft=None), open_session(draft=Nothing(), spec_length=64)
    expected = plain.generate("x", grammar=grammar, max_tokens=1500)
    found = drafting.generate("x", grammar=grammar, max_tokens=1500)
    assert found.text == expected.text == literal
    assert found.tokens == expected.tokens
    assert found.stats.rounds < expected.stats.rounds


def test_ambiguous_grammars_are_followed_with_drafts(open_session: Open) -> None:
    """The number of parses of forced text doubles with each character: the lookahead stays
    short."""
    grammar = 'root ::= "a" root "b" | "a" root "c" | "a" root "d"'
    found = open_session().generate("x", grammar=grammar, max_tokens=4)
    assert set(found.text) == {"a"}
    assert found.finish_reason == "length"


def test_ngram_draw_works_next_to_a_request_with_forced_tokens(open_session: Open) -> None:
    """While a grammar forces all tokens of one request, n-grams draft for another."""
    session = open_session(n_seq=2, ngram_draw=True)
    held = f'root ::= "{" ".join(f"{i:04}" for i in range(60))}"'
    bits = "0 1 1 0 1 0 0 0 1 1 1 0 1 0 1 1 0 0 1 0 0 1 0 1 1 1 0 1 1 0 0 1 0" * 4
    for seed in range(6):
        forced = session.submit("x = ", max_tokens=200, grammar=held)
        drawn = session.submit(
            bits, max_tokens=150, seed=seed, temperature=1.0, acceptance="rejection"
        )
        assert forced.result(60).stats.drafted > 0
        stats = drawn.result(60).stats
        assert (stats.generated_tokens, stats.drafter_errors) == (150, 0)
