"""GBNF grammars as Lark: the same tokens are allowed as by llama.cpp's own engine."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterator
from pathlib import Path

import llama_cpp
import numpy as np
import pytest
from llguidance import LLMatcher, LLTokenizer
from llguidance.llamacpp import lltokenizer_from_vocab
from numpy.typing import NDArray
from specllama.requests.gbnf.lark import gbnf_as_lark

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # llguidance's

GRAMMARS = {
    "a class after a repetition of it": 'root ::= [a-z]+ "x"',
    "a rule after a repetition": 'root ::= word "x"\nword ::= [a-z]+',
    "a literal next to classes": 'root ::= "de" " " | [a-z] [a-z] "y" root',
    "nothing": 'root ::= ""',
    "ambiguous": 'root ::= "a" root "b" | "a" root "c" | ""',
    "strings": 'root ::= "\\"" [^"\\n]* "\\"" root | "."',
    "numbers and words": 'root ::= item+\nitem ::= word " " | "(" root ")"\nword ::= [a-z]+ [0-9]*',
    "a run that ends alike": 'root ::= a root | "."\na ::= [a-z]* "q"',
    "a class in a literal": 'root ::= a root | "."\na ::= [a-z] | "ab"',
    "bounds": 'root ::= "a"{3,5} root? "b"{2} [c-e]{0,3}',
    "white space": 'root ::= r | ws root\nr ::= "x"\nws ::= [ \\t]*',
    "keywords": 'root ::= ("if" " "* name | name) "\\n" root?\nname ::= [a-z] [a-z0-9]*',
    "escapes": 'root ::= ("\\x41" [\\]\\-\\\\] "\\u00e9" [\\U0001F600-\\U0001F64F])* "\\t"',
    "comments and groups": 'root ::= ( # one\n  [0-9] |\n  ( "x" # two\n ) )+\n\n# end',
    "optional, often": 'root ::= (("x"? "y"?){3}){3} "z"',
    "json": r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
""",
}


@pytest.fixture(scope="module")
def vocabulary(bundled_model: Path) -> Iterator[llama_cpp.Llama]:
    model = llama_cpp.Llama(str(bundled_model), vocab_only=True, verbose=False)
    yield model
    model.close()


class Follower:
    """llama.cpp's own engine."""

    def __init__(self, vocab: llama_cpp.llama_vocab_p, grammar: str) -> None:
        self._sampler = llama_cpp.llama_sampler_init_grammar(vocab, grammar.encode(), b"root")
        self._candidates = (llama_cpp.llama_token_data * llama_cpp.llama_vocab_n_tokens(vocab))()
        n = len(self._candidates)
        self._array = llama_cpp.llama_token_data_array(self._candidates, n, -1, False)

    def allowed(self) -> NDArray[np.bool_]:
        view = np.ctypeslib.as_array(self._candidates)
        view["id"], view["logit"] = np.arange(len(view)), 0
        llama_cpp.llama_sampler_apply(self._sampler, ctypes.byref(self._array))
        return np.array(view["logit"] == 0)

    def accept(self, token: int) -> None:
        llama_cpp.llama_sampler_accept(self._sampler, token)

    def close(self) -> None:
        llama_cpp.llama_sampler_free(self._sampler)


def text_tokens(tokenizer: LLTokenizer) -> NDArray[np.bool_]:
    """Return which tokens both engines treat as the same text: not control tokens, NUL or parts of
    characters."""
    texts = [tokenizer.decode_bytes([token]) for token in range(tokenizer.vocab_size)]
    return np.array([
        bool(text) and b"\0" not in text and not tokenizer.is_special_token(token) and is_utf8(text)
        for token, text in enumerate(texts)
    ])  # fmt: skip


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("name", GRAMMARS)
def test_gbnf_converted_to_lark_allows_the_tokens_that_llama_cpp_allows(
    vocabulary: llama_cpp.Llama, name: str
) -> None:
    vocab = llama_cpp.llama_model_get_vocab(vocabulary.model)
    tokenizer = lltokenizer_from_vocab(vocab)
    is_text = text_tokens(tokenizer)
    ends = np.array([llama_cpp.llama_vocab_is_eog(vocab, i) for i in range(len(is_text))])
    chance = random.Random(name)
    for _ in range(4):
        expected = Follower(vocab, GRAMMARS[name])
        found = LLMatcher(tokenizer, gbnf_as_lark(GRAMMARS[name]))
        for _ in range(25):
            allowed = np.frombuffer(found.compute_logit_bias(), np.uint8) > 0
            wanted = expected.allowed()
            assert not found.get_error()
            assert np.array_equal(allowed & is_text, wanted & is_text)
            assert (allowed & ends).any() == (wanted & ends).any()
            some = np.flatnonzero(wanted & is_text)
            if len(some) == 0:
                break
            token = int(chance.choice(some))
            expected.accept(token)
            assert found.consume_token(token)
        expected.close()


def test_a_gbnf_grammar_of_many_conflicting_rules_is_converted() -> None:
    """Thousands of rules that all conflict with each other are written character by character."""
    rules = [f'r{i} ::= [a-z]+ "{i}" (r{(i + 1) % 1500} | r{i * 7 % 1500})?' for i in range(1500)]
    lark = gbnf_as_lark("\n".join(["root ::= r0", *rules]))
    assert lark.count("\n") > 1500
