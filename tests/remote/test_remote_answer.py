"""Answers of a remote target: a wrong field is named, with its value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from specllama._core import VerifyAnswer
from specllama.errors import RemoteError
from specllama.remote.answer import Asked, Description, read_answer, read_vocabulary
from specllama.remote.fields import Fields

ASKED = Asked(n_vocab=100, n_left=20, n_logprobs=1, n_drafted=3)
RIGHT: dict[str, Any] = {
    "tokens": [5, 6], "logprobs": [[5, -0.1, []], [6, -0.5, [[5, -1.0]]]], "drafted": 3,
    "seconds": 0.1, "done": False,
}  # fmt: skip
ABOUT: dict[str, Any] = {
    "n_ctx": 512, "n_vocab": 1000, "bos": 1, "eos": 2, "n_threads": 1, "max_draft_length": 8,
    "vocabulary": "0" * 16, "fim": [-1] * 5, "decode_seconds": [0.1], "chat_template": None,
    "description": "x", "kernels": "", "drafts": False,
}  # fmt: skip


def read(told: dict[str, Any], asked: Asked = ASKED) -> VerifyAnswer:
    fields = Fields.parse("http://x", json.dumps(told))
    assert fields is not None
    return read_answer(fields, asked)


def test_a_valid_answer_is_read() -> None:
    answer = read(RIGHT)
    assert (answer.tokens, answer.n_verified, answer.finish_reason) == ([5, 6], 3, None)
    told = [(one.token, round(one.logprob, 3), one.top) for one in answer.logprobs]
    assert told == [(5, -0.1, []), (6, -0.5, [(5, -1.0)])]
    ended = read(RIGHT | {"done": True, "finish_reason": "stop", "exact": True, "reused": 4})
    assert (ended.finish_reason, ended.exact, ended.n_reused) == ("stop", True, 4)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"drafted": 1e9}, '"drafted" is 1000000000.0, not a whole number from 0 to 3'),
        ({"drafted": 10**9}, '"drafted" is 1000000000, not'),
        ({"drafted": True}, '"drafted" is True, not'),
        ({"tokens": []}, '"tokens" is a list of 0, not at least one token'),
        ({"tokens": [5] * 5}, '"tokens" has 5 elements, more than 4'),
        ({"tokens": [100]}, '"tokens" is 100, not a whole number from 0 to 99'),
        ({"tokens": "5"}, "\"tokens\" is '5', not a list"),
        ({"seconds": float("nan")}, '"seconds" is nan, not'),
        ({"seconds": -1}, '"seconds" is -1, not'),
        ({"seconds": None}, '"seconds" is None, not'),
        ({"done": "no"}, "\"done\" is 'no', not true or false"),
        ({"done": True}, '"finish_reason" is missing'),
        ({"done": True, "finish_reason": "x"}, "\"finish_reason\" is 'x', not"),
        ({"logprobs": [[5, -1.0, []]]}, '"logprobs" is a list of 1, not those of 2 tokens'),
        ({"logprobs": [[5, -1.0]] * 2}, '"logprobs" is a list of 2, not'),
        ({"logprobs": [[5, 1.0, []]] * 2}, '"logprobs" is 1.0, not a number from -inf'),
        ({"logprobs": [[5, -1.0, [[5, -1.0]] * 2]] * 2}, "not at most 1 pairs"),
    ],
)
def test_a_wrong_field_is_named_with_its_value(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(RemoteError) as caught:
        read(RIGHT | wrong)
    assert said in str(caught.value)
    assert str(caught.value).startswith("http://x sent an unusable answer: ")


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_a_missing_field_is_named(name: str) -> None:
    told = {one: value for one, value in RIGHT.items() if one != name}
    with pytest.raises(RemoteError, match=f'"{name}" is missing'):
        read(told)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_ctx": 0}, '"n_ctx" is 0'),
        ({"n_vocab": -1}, '"n_vocab" is -1'),
        ({"bos": 1000}, '"bos" is 1000'),
        ({"fim": [1]}, "not five token ids"),
        ({"vocabulary": "0x"}, "16 hexadecimal digits"),
        ({"decode_seconds": [0.1] * 2000}, "has 2000 elements"),
        ({"decode_seconds": [float("inf")]}, '"decode_seconds" is inf'),
        ({"chat_template": 5}, '"chat_template" is 5'),
    ],
)
def test_a_wrong_description_is_refused(wrong: dict[str, Any], said: str) -> None:
    assert Description.read(Fields("http://x", ABOUT)).n_ctx == 512
    with pytest.raises(RemoteError) as caught:
        Description.read(Fields("http://x", ABOUT | wrong))
    assert said in str(caught.value)


WORDS: dict[str, Any] = {
    "pieces": ["a", "\xe9", "</s>"], "hidden": [2], "ends": [2], "fingerprint": "0" * 15 + "a",
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"pieces": ["a"] * 2}, '"pieces" is a list of 2, not the texts of 3 tokens'),
        ({"pieces": ["a"] * 4}, '"pieces" has 4 elements, more than 3'),
        ({"pieces": ["a", "b", "\u0100"]}, "not bytes as characters below 256"),
        ({"pieces": ["a", "b", 5]}, '"pieces" is 5, not a text'),
        ({"hidden": [3]}, '"hidden" is 3'),
        ({"ends": None}, '"ends" is None, not a list'),
        ({"fingerprint": "x"}, "16 hexadecimal digits"),
    ],
)
def test_a_wrong_vocabulary_is_refused(wrong: dict[str, Any], said: str) -> None:
    table = read_vocabulary(Fields("http://x", WORDS), 3)
    assert (table.pieces, table.hidden, table.ends) == ([b"a", b"\xe9", b"</s>"], [2], [2])
    assert table.fingerprint == 10
    with pytest.raises(RemoteError) as caught:
        read_vocabulary(Fields("http://x", WORDS | wrong), 3)
    assert said in str(caught.value)


def test_a_servers_message_is_shortened_to_one_line() -> None:
    told = {"error": {"message": "a\nb\x1b[2J" + "c" * 1000}}
    message = Fields("http://x", told).message()
    assert message.startswith("a b [2Jcc")
    assert message.endswith("c...")
    assert len(message) == 303
    for wrong in (5, None, ["x"]):
        assert Fields("http://x", {"error": {"message": wrong}}).message() == ""
