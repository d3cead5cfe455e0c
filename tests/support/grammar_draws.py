"""Texts of llguidance's grammars without a model: each token is one byte."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from specllama import ArgumentError
from specllama.requests.schema.grammar import schema_grammar
from specllama.requests.schema.schema_grammar import SchemaGrammar

_TOKENIZER = LLTokenizer("byte")
_LIMITS = LLParserLimits(
    max_items_in_row=5000,
    initial_lexer_fuel=1_000_000,
    step_lexer_fuel=200_000,
    step_max_items=200_000,
    max_lexer_states=250_000,
    max_grammar_size=500_000,
)
"""Those of the core."""
_ENDS = [ord(one) for one in '"}]0e,:t']
"""Bytes that lead to an end sooner, the best first."""


def of_schema(schema: Any, *, strict: bool = False) -> str:
    """Return the grammar of a schema. Raises ArgumentError."""
    return of_prepared(schema_grammar(schema, strict=strict).text)


def read(schema: Any, *, strict: bool = False) -> SchemaGrammar | None:
    """Return the prepared grammar of a schema; None if it is refused with a sentence."""
    try:
        return schema_grammar(schema, strict=strict)
    except ArgumentError as error:
        sentence, keywords = str(error), "(has|allows no|cannot be|nests|is false)"
    assert re.fullmatch(rf"json_schema {keywords}.+\.", sentence), sentence
    return None


def of_prepared(text: str) -> str:
    return LLMatcher.grammar_from_json_schema(text)


def of_lark(text: str) -> str:
    return LLMatcher.grammar_from_lark(text)


def matcher_of(grammar: str) -> LLMatcher:
    matcher = LLMatcher(_TOKENIZER, grammar, log_level=0, limits=_LIMITS)
    assert not matcher.is_error(), matcher.get_error()
    return matcher


def accepts(grammar: str, text: str) -> bool:
    """Return whether a grammar allows a whole text."""
    matcher, tokens = matcher_of(grammar), list(text.encode())
    n = matcher.try_consume_tokens(tokens)
    assert not matcher.is_error(), matcher.get_error()
    return n == len(tokens) and matcher.is_accepting()


def longest(grammar: str, text: str) -> int:
    """Return how many bytes of a text a grammar accepts as a whole text (-1: not even 0)."""
    matcher, data = matcher_of(grammar), text.encode()
    n = matcher.try_consume_tokens(list(data))
    while n >= 0:
        matcher.reset()
        if matcher.try_consume_tokens(list(data[:n])) == n and matcher.is_accepting():
            return n
        n -= 1
    return n


def allows(schema: Any, value: Any) -> bool:
    """Return whether the grammar of a schema allows a value."""
    return accepts(of_schema(schema), json.dumps(value, ensure_ascii=False))


def drawn(grammar: str, seed: int, most: int = 3000) -> bytes | None:
    """Return a random text that a grammar allows; a long one ends as soon as possible. None if it
    has not ended after `most` bytes."""
    rng, matcher, text = random.Random(seed), matcher_of(grammar), b""
    while len(text) < most and not matcher.is_stopped():
        is_long = len(text) > 150
        mask = matcher.compute_logit_bias()
        assert not matcher.is_error(), matcher.get_error()
        allowed = [byte for byte in range(256) if mask[byte]]
        if matcher.is_accepting() and (not allowed or rng.random() < (0.99 if is_long else 0.5)):
            return text
        ends = [byte for byte in _ENDS if byte in allowed]
        byte = rng.choice(allowed)
        if ends and is_long and rng.random() < 0.9:
            byte = ends[0]
        elif ord('"') in allowed and rng.random() < 0.2:
            byte = ord('"')
        matcher.consume_token(byte)
        text += bytes([byte])
    assert not matcher.is_error(), matcher.get_error()
    return text if matcher.is_stopped() else None


def values(schema: Any, n: int, *, strict: bool = False) -> list[Any]:
    """Return random values that the grammar of a schema allows, without those that did not end."""
    grammar = of_schema(schema, strict=strict)
    texts = (drawn(grammar, seed) for seed in range(n))
    return [json.loads(text) for text in texts if text is not None]
