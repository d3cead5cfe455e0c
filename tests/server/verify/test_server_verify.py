"""/v1/verify over HTTP: rounds, repetitions, refusals, and expiry."""

from __future__ import annotations

import json
import sys
from typing import Any

import httpx
import pytest
from prompts import PROMPTS
from serving import Server, refused, serve
from session_options import EXACT, FIXED
from specllama import QueueFullError, SpecSession
from specllama.formats.wire import Digest
from specllama.requests.background import queue_load
from verifying import MODULE, Client, N

SETTINGS = {"max_body": 100_000}


def test_rounds_accept_the_right_part_of_a_draft(server: Server, expected: list[int]) -> None:
    client = Client(server, prompt=MODULE)
    assert client.prompt == server.session.tokenize(MODULE)
    told = client.round([expected[1], expected[2], 3])
    assert (told["tokens"], told["drafted"], told["accepted"]) == (expected[1:4], 3, 2)
    assert told["n"] == 4
    assert not told["done"]
    assert told["seconds"] > 0
    while not told["done"]:
        told = client.round([])
    assert client.tokens == expected
    assert (told["finish_reason"], told["exact"]) == ("length", True)
    refused(client.ask(client.body([])), 410)


def test_a_repeated_round_gets_the_same_answer(server: Server, expected: list[int]) -> None:
    client = Client(server, prompt=MODULE)
    body = client.body(expected[1:3])
    told = client.round(expected[1:3])
    for again in (body, body | {"draft": []}, body | {"hash": "x"}):
        assert client.ask(again).json() == told
    while not (told := client.round([]))["done"]:
        pass
    client.n_rounds -= 1
    assert client.ask(client.body([])).json() == told  # the last one, too
    client.end()


def test_a_client_with_other_tokens_gets_the_agreed_position(server: Server) -> None:
    client = Client(server, prompt=MODULE)
    client.round([])
    right = client.body([])
    for wrong, agreed in (
        ({"hash": "0" * 16}, 0),
        ({"n": 1}, 0),
        ({"n": 50}, 0),
        ({"n": 1, "hash": str(Digest([*client.prompt, client.tokens[0]]))}, 1),
        ({"round": 3}, 2),
    ):
        error = refused(client.ask(right | wrong), 409)
        assert (error["agreed"], error["round"], error["code"]) == (agreed, 1, "disagreement")
    assert client.round([])["n"] == 3  # the generation continues
    client.end()


def test_unknown_generations_are_gone(server: Server) -> None:
    body = {"round": 1, "n": 1, "hash": "x", "draft": []}
    assert refused(server.post("/v1/verify/nothing", body), 410)["code"] == "gone"
    client = Client(server, prompt=MODULE)
    client.end()
    refused(client.ask(client.body([])), 410)
    assert httpx.delete(f"{server.url}/v1/verify/nothing", timeout=60).status_code == 204


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"", None),
        (b"[]", None),
        (b'{"prompt": NaN}', None),
        (b"{" * 5000, None),
        (b"\xff", None),
        ({}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": {}}, "prompt"),
        ({"prompt": ["x"]}, "prompt"),
        ({"prompt": [True]}, "prompt"),
        ({"prompt": [1.5]}, "prompt"),
        ({"prompt": [-1]}, "prompt"),
        ({"prompt": [10**6]}, "prompt"),
        ({"prompt": [10**30]}, "prompt"),
        ({"prompt": [5] * 3000}, "prompt"),
        ({"prompt": "x", "generated": "x"}, "generated"),
        ({"prompt": "x", "generated": [[]]}, "generated"),
        ({"prompt": "x", "generated": [10**30]}, "generated"),
        ({"prompt": "x", "generated": [-1]}, "generated"),
        ({"prompt": "x", "generated": [5] * 3000}, None),
        ({"prompt": "x", "vocabulary": "0123456789abcdef"}, "vocabulary"),
        ({"prompt": "x", "vocabulary": 5}, "vocabulary"),
        ({"prompt": "x", "options": []}, "options"),
        ({"prompt": "x", "options": 5}, "options"),
        ({"prompt": "x", "options": {"nothing": 1}}, "nothing"),
        ({"prompt": "x", "options": {"prompt": [5]}}, "prompt"),
        ({"prompt": "x", "options": {"draft": [5]}}, "draft"),
        ({"prompt": "x", "options": {"generated": [5]}}, "generated"),
        ({"prompt": "x", "options": {"self": 1}}, "self"),
        ({"prompt": "x", "options": {"": 1}}, ""),
        ({"prompt": "x", "options": {"trace": True}}, "trace"),
        ({"prompt": "x", "options": {"echo": True}}, "echo"),
        ({"prompt": "x", "options": {"reference": "x"}}, "reference"),
        ({"prompt": "x", "options": {"json_schema": {}}}, "json_schema"),
        ({"prompt": "x", "options": {"max_tokens": "x"}}, "max_tokens"),
        ({"prompt": "x", "options": {"max_tokens": -2}}, "max_tokens"),
        ({"prompt": "x", "generated": [5], "options": {"max_tokens": 0}}, "generated"),
        ({"prompt": "x", "options": {"max_tokens": 10**30}}, "max_tokens"),
        ({"prompt": "x", "options": {"max_tokens": 5000}}, "max_tokens"),
        ({"prompt": "x", "options": {"stop": ["a"]}}, "stop"),
        ({"prompt": "x", "options": {"temperature": "hot"}}, "temperature"),
        ({"prompt": "x", "options": {"temperature": 1e999}}, None),
        ({"prompt": "x", "options": {"temperature": -1}}, "temperature"),
        ({"prompt": "x", "options": {"seed": -2}}, "seed"),
        ({"prompt": "x", "options": {"seed": 2**64}}, "seed"),
        ({"prompt": "x", "options": {"top_k": 1.5}}, "top_k"),
        ({"prompt": "x", "options": {"logprobs": "x"}}, "logprobs"),
        ({"prompt": "x", "options": {"logprobs": 10**9}}, "logprobs"),
        ({"prompt": "x", "options": {"logit_bias": 5}}, "logit_bias"),
        ({"prompt": "x", "options": {"logit_bias": "ab"}}, "logit_bias"),
        ({"prompt": "x", "options": {"logit_bias": [5]}}, "logit_bias"),
        ({"prompt": "x", "options": {"logit_bias": [[[], 1]]}}, "logit_bias"),
        ({"prompt": "x", "options": {"logit_bias": [["5", 1]]}}, "logit_bias"),
        ({"prompt": "x", "options": {"logit_bias": [[5, "x"]]}}, "logit_bias"),
        ({"prompt": "x", "options": {"logit_bias": [[10**6, 1]]}}, None),
        ({"prompt": "x", "options": {"grammar": 5}}, "grammar"),
        ({"prompt": "x", "options": {"grammar": 'root ::= "a'}}, "grammar"),
        ({"prompt": "x", "options": {"grammar_triggers": ["x"]}}, "grammar_triggers"),
        ({"prompt": "x", "options": {"acceptance": "x"}}, "acceptance"),
        ({"prompt": "x", "options": {"lenience": 2}}, None),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_bad_opening_requests_are_refused(server: Server, body: Any, param: str | None) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    error = refused(server.post("/v1/verify", content), 400)
    if param is not None:
        assert str(error["param"]).removeprefix("options.") == param, error


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"round": None}, "round"), ({"n": None}, "n"), ({"hash": None}, "hash"),
        ({"round": "1"}, "round"), ({"round": 0}, "round"), ({"round": 10**30}, "round"),
        ({"round": True}, "round"), ({"n": -1}, "n"), ({"n": 1.5}, "n"), ({"n": []}, "n"),
        ({"hash": 5}, "hash"), ({"hash": []}, "hash"), ({"draft": "x"}, "draft"),
        ({"draft": 5}, "draft"), ({"draft": [1.5]}, "draft"), ({"draft": [None]}, "draft"),
        ({"draft": {"0": 1}}, "draft"), ({"draft": [-1]}, "draft"), ({"draft": [10**6]}, "draft"),
        ({"draft": [10**30]}, None), ({"draft": [5] * 65}, "draft"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_rounds_are_refused_and_lose_nothing(
    server: Server, expected: list[int], change: dict[str, Any], param: str | None
) -> None:
    """The generation continues after them."""
    client = Client(server, prompt=MODULE)
    refused(client.ask(client.body([]) | change), 400, param)
    for body in (b"", b"[]", b"5", b'"x"'):
        refused(client.ask(body), 400)
    refused(client.ask(b" " * 200_000), 413)
    assert client.round(expected[1:3])["accepted"] == 2
    client.end()


def test_drafts_may_have_the_longest_length_or_be_left_out(
    server: Server, expected: list[int]
) -> None:
    client = Client(server, prompt=MODULE)
    assert client.round([*expected[1:3], *[3] * 62])["accepted"] == 2
    body = client.body([])
    del body["draft"]
    assert client.ask(body).json()["drafted"] == 0
    client.end()


def test_a_broken_off_generation_continues(server: Server, expected: list[int]) -> None:
    prompt = server.session.tokenize(MODULE)
    client = Client(server, prompt=prompt, generated=expected[:5])
    assert "prompt" not in client.opened  # it is returned only for texts
    assert client.tokens[:5] == expected[:5]
    while not client.round(expected[len(client.tokens) :][:3])["done"]:
        pass
    assert client.tokens == expected
    done = server.post("/v1/verify", {"prompt": prompt, "generated": expected,
                                      "options": {"max_tokens": N}}).json()  # fmt: skip
    assert (done["done"], done["tokens"], done["n"]) == (True, [], N)


def test_max_tokens_null_fills_the_context(server: Server) -> None:
    prompt = PROMPTS["near the limit"]
    endless = {"max_tokens": None, "logit_bias": [[server.session._backend.eos, None]]}
    client = Client(server, prompt=prompt, options=endless)
    told = client.round([])
    while not told["done"]:
        told = client.round([])
    assert len(client.prompt) + told["n"] == server.session.n_ctx


def test_finished_and_failed_generations_do_not_count_as_open(server: Server) -> None:
    """At most 64 may be open, not counting those that are over."""
    for _ in range(70):
        Client(server, prompt="x", options={"max_tokens": 1})
    for _ in range(70):
        body = {"prompt": "x", "options": {"grammar": 'root ::= "a'}}
        refused(server.post("/v1/verify", body), 400)
    assert len(server.app._verify._open) <= 64
    assert queue_load(server.session).n_running == 0


def test_too_many_open_generations_are_refused(session: SpecSession) -> None:
    with serve(session) as server:
        clients = [Client(server, prompt="x") for _ in range(2)]
        names = server.app._verify._open
        for i in range(62):
            names[f"name {i}"] = names[clients[0].id]
        error = refused(server.post("/v1/verify", {"prompt": "x"}), 503)
        assert error["message"] == "64 generations are open, the maximum; try again later."
        for i in range(62):
            del names[f"name {i}"]
        for client in clients:
            client.end()
        Client(server, prompt="x").end()


def test_a_client_cannot_open_all_generations(session: SpecSession) -> None:
    """Other clients still can."""
    with serve(session) as server:
        client = Client(server, prompt="x")
        names = server.app._verify._open
        for i in range(30):
            names[f"name {i}"] = names[client.id]
        Client(server, prompt="x").end()
        names["name 30"] = names[client.id]
        message = "A client may have at most 32 open generations."
        refusal = server.post("/v1/verify", {"prompt": "x"})
        assert refused(refusal, 503)["message"] == message
        with (
            SpecSession(target=server.url, draft=None) as remote,
            pytest.raises(QueueFullError, match=message),
        ):
            remote.generate("x")
        if sys.platform == "linux":  # elsewhere loopback has only one address
            transport = httpx.HTTPTransport(local_address="127.0.0.2")
            with httpx.Client(transport=transport, timeout=60) as stranger:
                assert stranger.post(f"{server.url}/v1/verify", json={"prompt": "x"}).is_success
        for i in range(31):
            del names[f"name {i}"]
        Client(server, prompt="x").end()


def test_a_reopened_name_replaces_the_first_generation(server: Server, expected: list[int]) -> None:
    """As after the answer to the opening was lost."""
    first = Client(server, prompt=MODULE, name="a name")
    other = Client(server, prompt=MODULE, name="another")
    refused(other.ask(first.body([]) | {"hash": "x"}), 409)
    again = Client(server, prompt=MODULE, name="a name")
    refused(first.ask(first.body([])), 410)
    for client in (again, other):
        assert client.round(expected[1:3])["accepted"] == 2
        client.end()
    for name in (5, "x" * 65):
        refused(server.post("/v1/verify", {"prompt": "x", "name": name}), 400, "name")


def test_verify_respects_max_prompt(session: SpecSession) -> None:
    with serve(session, max_prompt=3) as server:
        error = refused(server.post("/v1/verify", {"prompt": MODULE}), 400, "prompt")
        assert "at most 3 are allowed" in error["message"]


def test_verify_describes_the_target(server: Server) -> None:
    told = server.get("/v1/verify").json()
    session = server.session
    assert (told["n_ctx"], told["n_vocab"]) == (session.n_ctx, session.n_vocab)
    assert int(told["vocabulary"], 16) == session._backend.vocabulary
    assert told["max_draft_length"] == FIXED["spec_length"]
    # Also with a fixed draft length.
    assert told["decode_seconds"][0] > 0
    assert any(told["decode_seconds"][1 : FIXED["spec_length"] + 1])


def test_verify_describes_targets_without_drafters() -> None:
    with SpecSession(draft=None, **EXACT, verifies=True) as session, serve(session) as server:
        told = server.get("/v1/verify").json()
        assert told["max_draft_length"] == 64
        assert told["decode_seconds"][0] > 0
    with SpecSession(draft=None, **EXACT) as session:
        assert session._backend.max_draft_length == 0


def test_a_session_that_cannot_verify_gives_one_token_per_round() -> None:
    with SpecSession(draft=None, **EXACT) as session, serve(session) as server:
        expected = session.generate(MODULE, max_tokens=3).tokens
        client = Client(server, prompt=MODULE)
        told = client.round(expected[1:3])
        assert (told["tokens"], told["drafted"]) == (expected[1:2], 0)
        client.end()


def test_finished_generations_are_removed(session: SpecSession) -> None:
    """Also those that were ended or that failed. Only the latest names are kept."""
    with serve(session) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        for i in range(270):
            body = {"prompt": "x", "name": f"name {i}", "options": {"max_tokens": 1 + i % 2}}
            opened = client.post("/v1/verify", json=body).json()
            client.delete(f"/v1/verify/{opened['id']}")
        refused(server.post("/v1/verify", {"prompt": "x", "options": {"grammar": "root"}}), 400)
        verify = server.app._verify
        assert (len(verify._open), len(verify._timers), len(verify._calls)) == (0, 0, 0)
        assert len(verify._named) <= 256


def test_a_finished_generation_repeats_its_last_answer(server: Server) -> None:
    client = Client(server, prompt=MODULE)
    while not (told := client.round([]))["done"]:
        pass
    refused(client.ask(client.body([])), 410)
    client.n_rounds -= 1
    assert client.ask(client.body([])).json() == told
    client.end()
