"""Answers of a remote target: a wrong field is named, with its value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from specllama.errors import RemoteError
from specllama.remote.answer import Answer, Asked, Description
from specllama.remote.fields import Fields

ASKED = Asked(
    n_vocab=100, n_before=7, n_left=20, n_logprobs=1, stop=["end"], n_drafted=3, opens=False
)
RIGHT: dict[str, Any] = {
    "tokens": [5, 6], "n": 9, "chunks": [[5, "a", 1], [6, "b", 0, [6, -0.5, [[5, -1.0]]]]],
    "drafted": 3, "accepted": 1, "offered": 3, "used": 1, "rounds": 1, "seconds": 0.1,
    "done": False,
}  # fmt: skip
ABOUT: dict[str, Any] = {
    "n_ctx": 512, "n_vocab": 1000, "bos": 1, "eos": 2, "n_threads": 1, "longest_draft": 8,
    "vocabulary": "0" * 16, "fim": [-1] * 5, "decode_seconds": [0.1], "chat_template": None,
    "description": "x", "kernels": "", "drafts": False,
}  # fmt: skip


def read(told: dict[str, Any], asked: Asked = ASKED) -> Answer:
    fields = Fields.parse("http://x", json.dumps(told))
    assert fields is not None
    return Answer.read(fields, asked)


def test_a_valid_answer_is_read() -> None:
    answer = read(RIGHT)
    assert (answer.tokens, answer.n, answer.n_drafted, answer.done) == ([5, 6], 9, 3, False)
    assert [(one.token, one.text, one.from_draft) for one in answer.chunks] == [
        (5, "a", True),
        (6, "b", False),
    ]
    logprobs = answer.chunks[1].logprobs
    assert logprobs is not None
    assert (logprobs.token, logprobs.logprob, logprobs.top) == (6, -0.5, [(5, -1.0)])
    ended = read(
        RIGHT
        | {"done": True, "n": 8, "finish_reason": "stop", "stop_string": "end"}
        | {"exact": True, "reused": 4}
    )
    assert (ended.n, ended.finish_reason, ended.stop_string) == (8, "stop", "end")
    assert (ended.exact, ended.n_reused) == (True, 4)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"drafted": 1e9}, '"drafted" is 1000000000.0, not a whole number from 0 to 3'),
        ({"drafted": 10**9}, '"drafted" is 1000000000, not'),
        ({"drafted": True}, '"drafted" is True, not'),
        ({"n": -1}, '"n" is -1, not'),
        ({"n": 8}, '"n" is 8, not a whole number from 9 to 9'),
        ({"tokens": []}, '"tokens" is a list of 0, not one token at least'),
        ({"tokens": [5] * 5}, '"tokens" has 5 elements, more than 4'),
        ({"tokens": [100]}, '"tokens" is 100, not a whole number from 0 to 99'),
        ({"tokens": "5"}, "\"tokens\" is '5', not a list"),
        ({"rounds": 0}, '"rounds" is 0, not'),
        ({"seconds": float("nan")}, '"seconds" is nan, not'),
        ({"seconds": -1}, '"seconds" is -1, not'),
        ({"seconds": None}, '"seconds" is None, not'),
        ({"done": "no"}, "\"done\" is 'no', not true or false"),
        ({"done": True}, '"finish_reason" is missing'),
        ({"done": True, "finish_reason": "x"}, "\"finish_reason\" is 'x', not"),
        (
            {"done": True, "finish_reason": "stop", "stop_string": "other"},
            "\"stop_string\" is 'other', not one of the stop strings",
        ),
        ({"chunks": [[5, "a"]]}, '"chunks" is a list of 2, not'),
        ({"chunks": [[5, "\ud800", 0]]}, "not a text without lone surrogates"),
        ({"chunks": [[5, "a" * 70_000, 0]]}, '"chunks" has 70000 characters, more than 65536'),
        ({"chunks": [[5, "a", 0]] * 11}, '"chunks" has 11 elements, more than 10'),
        ({"chunks": [[5, "a", 0, [5, 1.0, []]]]}, '"chunks" is 1.0, not a number from -inf'),
        ({"chunks": [[5, "a", 0, [5, -1.0, [[5, -1.0]] * 2]]]}, "not at most 1 pairs"),
        ({"held": 5}, '"held" is 5, not a text'),
        ({"accepted": 4}, '"accepted" is 4, not'),
        ({"used": 2}, '"used" is 2, not'),
    ],
)
def test_a_wrong_field_is_named_with_its_value(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(RemoteError) as caught:
        read(RIGHT | wrong)
    assert said in str(caught.value)
    assert str(caught.value).startswith("http://x gave an answer that cannot be used: ")


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
        ({"drafts": 1}, '"drafts" is 1'),
    ],
)
def test_a_wrong_description_is_refused(wrong: dict[str, Any], said: str) -> None:
    assert Description.read(Fields("http://x", ABOUT)).n_ctx == 512
    with pytest.raises(RemoteError) as caught:
        Description.read(Fields("http://x", ABOUT | wrong))
    assert said in str(caught.value)


def test_a_servers_message_is_shortened_to_one_line() -> None:
    told = {"error": {"message": "a\nb\x1b[2J" + "c" * 1000}}
    message = Fields("http://x", told).message()
    assert message.startswith("a b [2Jcc")
    assert message.endswith("c...")
    assert len(message) == 303
    for wrong in (5, None, ["x"]):
        assert Fields("http://x", {"error": {"message": wrong}}).message() == ""
