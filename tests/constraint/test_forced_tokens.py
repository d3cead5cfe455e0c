"""Forced tokens, the only ones that a grammar allows: they are added without a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llama_cpp
import pytest
from llguidance import LLMatcher, LLTokenizer
from llguidance.llamacpp import lltokenizer_from_vocab
from random_model import WRITERS
from schemas import SCHEMAS
from scripted_model import BOS, EOS, FIRST
from session_options import Open
from specllama import Drafter, SpecSession
from specllama.requests.grammar import read_schema

Script = Callable[..., Path]

LITERAL = 'root ::= "<ab>" [0-9] ";cd"'
PIECES = [*"<ab>7;cd"]


class Nothing(Drafter):
    """Drafts nothing, so that only the grammar does."""

    def propose(self, sequence: int, tokens: Any, max_tokens: int) -> list[int]:
        return []


@pytest.fixture
def sessions(scripted: Script, open_session: Open) -> tuple[SpecSession, SpecSession]:
    """A session without speculation, and one with it."""
    path = scripted(PIECES, others="89")
    return open_session(path, None), open_session(path, Nothing(), spec_length=1)


def n_left(tokenizer: LLTokenizer, schema: dict[str, Any], tokens: list[int]) -> Iterator[int]:
    """Yield how many tokens of the vocabulary a schema's grammar allows at each position, and after
    the last token, by llguidance's own bindings."""
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(read_schema(schema).text))
    for token in [*tokens, None]:
        yield sum(bias > 0 for bias in matcher.compute_logit_bias())
        if token is not None:
            assert matcher.consume_token(token)


def test_forced_tokens_need_no_round(sessions: tuple[SpecSession, SpecSession]) -> None:
    plain, drafting = sessions
    expected = plain.generate([BOS], grammar=LITERAL)
    assert expected.text == "<ab>7;cd"
    assert expected.stats.forced == 0
    assert expected.stats.rounds == len(PIECES) + 1  # and the end
    found = drafting.generate([BOS], grammar=LITERAL, trace=True)
    assert found.tokens == expected.tokens
    assert found.finish_reason == "stop"
    # Rounds give "<", a draft, and the digit; everything else, the end included, is forced.
    assert (found.stats.rounds, found.stats.accepted, found.stats.forced) == (3, 1, 5)
    assert found.stats.generated_tokens == len(PIECES)
    assert found.trace is not None
    rounds = found.trace.rounds
    assert [one.position for one in rounds] == [0, 1, 4]
    assert [one.forced for one in rounds] == [[], [FIRST + 3], [*range(FIRST + 5, FIRST + 8), EOS]]
    kinds = [[token.kind for token in found.trace.tokens(i)] for i in range(3)]
    forced = 3 * ["forced"]
    assert kinds == [["plain"], ["accepted", "bonus", "forced"], ["plain", *forced, "cut"]]
    assert 'class="forced"' in found.trace.to_html()


def test_a_text_of_forced_tokens_longer_than_a_batch_is_complete(
    scripted: Script, open_session: Open
) -> None:
    """The text does not fit into a batch, and each token is one byte."""
    pieces: list[str | bytes] = [bytes([byte]) for byte in b"abcdefgh"]
    literal = "abcdefgh" * 100
    path = scripted(pieces, then=None, n_ctx=2048)
    session = open_session(path, Nothing(), n_batch=32)
    found = session.generate([BOS], grammar=f'root ::= "{literal}" [a-z]', max_tokens=900)
    assert found.text == literal + "a"
    assert found.stats.rounds <= 3
    assert found.stats.forced > 790


def test_limits_and_stop_strings_end_a_text_of_forced_tokens(
    sessions: tuple[SpecSession, SpecSession],
) -> None:
    plain, drafting = sessions
    for options in ({"max_tokens": 4}, {"stop": "b>"}, {"stop": [">7;c"]}, {"max_tokens": 6}):
        expected = plain.generate([BOS], grammar=LITERAL, **options)
        found = drafting.generate([BOS], grammar=LITERAL, **options)
        assert found.stats.forced > 0
        assert (found.text, found.tokens) == (expected.text, expected.tokens)
        assert found.finish_reason == expected.finish_reason
        assert found.stats.generated_tokens == expected.stats.generated_tokens
        stream = drafting.stream([BOS], grammar=LITERAL, **options)
        assert "".join(chunk.text for chunk in stream) == expected.text
        # The memory does not contain what a stop string cut off.
        assert stream._stream.n_prefilled <= 1 + len(expected.tokens)


@pytest.mark.parametrize(
    "options",
    [{"logprobs": 2}, {"logit_bias": {FIRST: 1.0}}, {"logit_bias": {FIRST + 1: float("-inf")}}],
)
def test_logprobs_and_biases_switch_forced_tokens_off(
    sessions: tuple[SpecSession, SpecSession], options: dict[str, Any]
) -> None:
    """Log-probabilities need logits, and a bias may forbid the tokens that the grammar allows."""
    plain, drafting = sessions
    expected = plain.generate([BOS], grammar=LITERAL, **options)
    found = drafting.generate([BOS], grammar=LITERAL, **options)
    assert found.tokens == expected.tokens
    assert [str(one) for one in found.logprobs] == [str(one) for one in expected.logprobs]
    assert found.finish_reason == expected.finish_reason
    assert found.stats.forced == 0


def test_several_requests_get_their_own_forced_tokens(scripted: Script, open_session: Open) -> None:
    session = open_session(scripted(PIECES), Nothing(), n_seq=3, n_ctx=64, spec_length=2)
    handles = [session.submit([BOS], grammar=LITERAL) for _ in range(7)]
    for handle in handles:
        found = handle.result()
        assert found.text == "<ab>7;cd"
        assert found.stats.forced > 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # llguidance's, of llama-cpp-python
@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.9}])
def test_forced_tokens_are_the_only_ones_in_llguidances_mask(
    open_session: Open, bundled_model: Path, sampling: dict[str, Any]
) -> None:
    """Over the whole vocabulary. The tokens are those without speculation."""
    drafting, plain = open_session(), open_session(draft=None)
    vocabulary = llama_cpp.Llama(str(bundled_model), vocab_only=True, verbose=False)
    tokenizer = lltokenizer_from_vocab(llama_cpp.llama_model_get_vocab(vocabulary.model))
    n_certain = 0
    for name, schema in SCHEMAS.items():
        options = {"json_schema": schema, "seed": 5, "max_tokens": 60, **sampling}
        found = drafting.generate("records = ", trace=True, **options)
        assert found.tokens == plain.generate("records = ", **options).tokens, name
        left = list(n_left(tokenizer, schema, found.tokens))
        assert found.trace is not None
        for i, one in enumerate(found.trace.rounds):
            kinds = [token.kind for token in found.trace.tokens(i)]
            place = one.position + kinds.count("accepted") + 1
            for j, token in enumerate(one.forced):
                assert left[place + j] == 1
                n_certain += 1
                if place + j < len(found.tokens):
                    assert token == found.tokens[place + j]
                else:  # the token that ends the text is not part of it
                    assert found.finish_reason == "stop"
        stats = found.stats
        if found.finish_reason == "length":
            assert stats.generated_tokens == stats.rounds + stats.accepted + stats.forced
    assert n_certain > 0


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_forced_tokens_change_no_token_with_any_kind_of_memory(
    kind: str, tmp_path: Path, open_session: Open
) -> None:
    """Forced tokens are rewound and restored like drafts."""
    path = WRITERS[kind](tmp_path / "random.gguf")
    plain, drafting = open_session(path, None), open_session(path, spec_length=4)
    grammar = r'root ::= (" w" [0-9]+ "\n\n\n"){1,40}'  # each word and each line end is a token
    expected = plain.generate([5, 6, 7], grammar=grammar, max_tokens=80)
    found = drafting.generate([5, 6, 7], grammar=grammar, max_tokens=80)
    assert found.tokens == expected.tokens
    assert found.stats.forced > 20
