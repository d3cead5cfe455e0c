"""Published models: their templates, tokenizers, weights and windows.

Skipped without the files (see real_models.py). The models are opened with default options, so two
runs may differ at near-ties (see near_ties.py). Copies in Q8_0 are opened with exact=True and must
not differ.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llama_cpp
import pytest
from near_ties import tie
from prompts import MODULE
from real_models import (
    CHATTY,
    EDIT,
    MODELS,
    copying_prompt,
    endless,
    forget,
    near,
    real_model,
)
from session_options import Open
from specllama import ArgumentError, ModelError, SpecSession

pytestmark = pytest.mark.slow
DRAFTED = [(name, "ngram") for name in MODELS] + [("qwen-1.5b", "qwen-0.5b")]
EXACT_COPIES = ["smollm2", "gemma", "qwen-0.5b"]
TEMPERATURES = [0.0, 0.8]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "inhabitants": {"enum": [1000, 100000, 1000000]},
        "tags": {"type": "array", "items": {"enum": ["old", "big", "small"]}, "maxItems": 3},
    },
    "required": ["city", "inhabitants", "tags"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("name", CHATTY)
def test_real_models_hold_a_conversation(open_real: Open, name: str) -> None:
    """A system message and two turns, whole and streamed; tokens in the memory are not decoded
    again."""
    session = open_real(name, "ngram")
    talk: list[dict[str, str]] = [
        {"role": "system", "content": "You are a helpful assistant. Answer briefly."},
        {"role": "user", "content": "What is the capital of France?"},
    ]
    prompt = session.detokenize(session.render_chat(talk), special=True)
    assert "<|im_start|>system\nYou are a helpful assistant. Answer briefly.<|im_end|>" in prompt
    first = session.chat(talk, max_tokens=24)
    assert "Paris" in first.text
    assert "<|im_" not in first.text
    with session.stream_chat(talk, max_tokens=24) as stream:
        chunks = list(stream)
    again = stream.result()
    assert "".join(chunk.text for chunk in chunks) == again.text
    assert [chunk.token for chunk in chunks if chunk.token is not None] == again.tokens
    assert again.stats.reused_tokens == again.stats.prompt_tokens - 1
    assert again.text == first.text
    talk.append({"role": "assistant", "content": first.text})
    talk.append({"role": "user", "content": "And of Italy?"})
    second = session.chat(talk, max_tokens=24)
    assert second.stats.reused_tokens >= first.stats.prompt_tokens
    if name != "smollm2":  # it does not know the answer
        assert "Rome" in second.text


def test_a_base_model_cannot_chat(open_real: Open) -> None:
    session = open_real("gemma", "ngram")
    assert not session.has_chat_template
    with pytest.raises(ModelError, match=r"^The model has no chat template; continue a text"):
        session.chat(EDIT)
    with pytest.raises(ModelError, match="has no chat template"):
        session.stream_chat(EDIT)


@pytest.mark.parametrize(("name", "drafter"), DRAFTED)
def test_drafts_change_no_token_of_real_models_except_near_ties(
    open_real: Open, name: str, drafter: str
) -> None:
    plain, drafting = open_real(name), open_real(name, drafter)
    prompt = copying_prompt(plain, name)
    limits = near(open_real, name)
    n_accepted = 0
    for temperature, limit in zip(TEMPERATURES, limits, strict=True):
        options: dict[str, Any] = {
            "max_tokens": 48,
            "temperature": temperature,
            "seed": 11,
            "logit_bias": endless(plain, name),
            "logprobs": 100,
        }
        forget(plain)
        expected = plain.generate(prompt, **options)
        forget(drafting)
        found = drafting.generate(prompt, **options)
        assert not expected.stats.exact
        assert len(found.tokens) == 48
        n_accepted += found.stats.accepted
        distance = tie(expected, found.tokens, temperature)
        assert distance is None or distance < limit
        # Until the texts differ, the probabilities of likely tokens are equal up to rounding.
        for a, b in zip(expected.logprobs, found.logprobs, strict=True):
            if a.token != b.token:
                break
            if a.token == a.top[0][0]:
                assert a.logprob == pytest.approx(b.logprob, abs=limits[0])
    assert n_accepted > 16


@pytest.mark.parametrize("name", EXACT_COPIES)
def test_drafts_change_no_bit_of_exact_copies_of_real_models(
    open_real: Open, exact_copy: Callable[[str], Path], name: str
) -> None:
    """All tokens, and all bits of their log-probabilities."""
    path = exact_copy(name)
    plain, drafting = (open_real(path, draft, exact=True) for draft in (None, "ngram"))
    prompt = copying_prompt(plain, name)
    n_accepted = 0
    for temperature in TEMPERATURES:
        options: dict[str, Any] = {"max_tokens": 64, "temperature": temperature, "seed": 5}
        expected = plain.generate(prompt, logprobs=3, **options)
        found = drafting.generate(prompt, logprobs=3, **options)
        assert expected.stats.exact
        assert found.stats.exact
        n_accepted += found.stats.accepted
        assert found.tokens == expected.tokens
        for a, b in zip(expected.logprobs, found.logprobs, strict=True):
            assert (a.logprob, a.top) == (b.logprob, b.top)
    assert n_accepted > 16


@pytest.mark.parametrize(
    ("name", "flash_attn"), [*((name, True) for name in MODELS), ("qwen-1.5b", False)]
)
def test_greedy_tokens_of_real_models_are_those_of_llama_cpp_python(
    open_real: Open, name: str, flash_attn: bool
) -> None:
    """The prompts' tokens are equal, too. One case is without flash attention, as is that model's
    default."""
    session = open_real(name, "ngram", flash_attn=flash_attn)
    limit, _ = near(open_real, name)
    llama = llama_cpp.Llama(
        str(real_model(name)), n_ctx=512, n_batch=512, n_gpu_layers=0, n_threads=1,
        n_threads_batch=1, flash_attn=flash_attn, verbose=False,
    )  # fmt: skip
    for text in (MODULE, "Žluťoučký kůň říká: 你好,\n", "In 1492, "):
        prompt = session.tokenize(text)
        assert llama.tokenize(text.encode(), special=True) == prompt
        ours = session.generate(
            prompt, max_tokens=24, logprobs=100, logit_bias=endless(session, name)
        )
        ends = list(endless(session, name))

        def endlessly(_: Any, scores: Any, ends: list[int] = ends) -> Any:
            scores[ends] = -math.inf
            return scores

        theirs: list[int] = []
        for token in llama.generate(
            prompt, temp=0.0, logits_processor=llama_cpp.LogitsProcessorList([endlessly])
        ):
            theirs.append(token)
            if len(theirs) == 24:
                break
        distance = tie(ours, theirs)
        assert distance is None or distance < limit
    llama.close()


@pytest.mark.parametrize("name", MODELS)
def test_real_models_follow_grammars_and_schemas(open_real: Open, name: str) -> None:
    session = open_real(name, "ngram")
    assert session.generate(
        "Is the sea salty? Answer:", grammar='root ::= " yes" | " no"', max_tokens=8
    ).text in (" yes", " no")
    for options in ({}, {"temperature": 0.8, "seed": 3}):
        answer = session.generate("A city in JSON: ", json_schema=SCHEMA, max_tokens=120, **options)
        assert answer.finish_reason == "stop"
        city = json.loads(answer.text)
        assert list(city) == ["city", "inhabitants", "tags"]
        assert len(city["city"]) <= 20
        assert city["inhabitants"] in (1000, 100000, 1000000)
        assert set(city["tags"]) <= {"old", "big", "small"}


@pytest.mark.parametrize(
    ("target", "draft", "message"),
    [
        ("qwen-0.5b", "smollm2", r"it has 49152 tokens, not 151936\.$"),
        ("qwen-0.5b", "gemma", r"its tokenizer is of another type\.$"),
        ("gemma", "smollm2", r"its tokenizer is of another type\.$"),
    ],
)
def test_draft_models_of_another_vocabulary_are_refused(
    target: str, draft: str, message: str
) -> None:
    path = real_model(draft)
    with pytest.raises(ModelError, match=message) as caught:
        SpecSession(real_model(target), path, n_ctx=256)
    assert str(caught.value).startswith(f"The draft model {path} cannot draft for ")


@pytest.mark.parametrize("name", MODELS)
def test_texts_of_real_models_end_by_length_stop_and_end_token(open_real: Open, name: str) -> None:
    session = open_real(name, "ngram")
    counting = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,"
    whole = session.generate(counting, max_tokens=24, logit_bias=endless(session, name))
    assert whole.text.startswith(" 15, 16, 17")
    assert whole.finish_reason == "length"
    stopped = session.generate(counting, max_tokens=24, stop=["7,", "never"])
    assert stopped.text == " 15, 16, 1"
    assert stopped.finish_reason == "stop"
    for n in (0, 1, 2):
        few = session.generate(counting, max_tokens=n)
        assert few.tokens == whole.tokens[:n]
        assert few.finish_reason == "length"
    with pytest.raises(ArgumentError, match="the context has room for"):
        session.generate(counting, max_tokens=2048)
    small = open_real(name, "ngram", n_ctx=64)
    for options in ({"max_tokens": None}, {}):
        full = small.generate(counting, logit_bias=endless(small, name), **options)
        assert full.finish_reason == "length"
        assert full.stats.prompt_tokens + full.stats.generated_tokens == 64
    with pytest.raises(ArgumentError, match="leaves no room in a context of 64"):
        small.generate(counting * 3)
    with pytest.raises(ArgumentError, match="The prompt is empty"):
        small.generate("")


@pytest.mark.parametrize("name", MODELS)
def test_chunks_of_real_models_end_between_characters(open_real: Open, name: str) -> None:
    """With any drafter."""
    session = open_real(name, "ngram")
    line = "你好, 世界 \N{ROCKET}\N{PARTY POPPER} žluťoučký kůň ᚠᛇᚻ\n"
    assert session.detokenize(session.tokenize(line, add_special=False)) == line
    chunks = list(session.stream(line * 6, max_tokens=48, logit_bias=endless(session, name)))
    text = "".join(chunk.text for chunk in chunks)
    assert "你好, 世界 \N{ROCKET}" in text
    assert "\N{REPLACEMENT CHARACTER}" not in "".join(chunk.text for chunk in chunks[:-1])
    assert any(chunk.text == "" for chunk in chunks)  # chunks whose text follows later
    last = session.last
    assert last is not None
    assert last.text == text
    assert last.stats.accepted > 8
