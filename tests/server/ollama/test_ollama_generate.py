"""/api/generate through the official client, with scripted models."""

from __future__ import annotations

from typing import Any

import ollama
import pytest
from serving import Server
from specllama.server.body.fields import Fields
from specllama.server.ollama.fields import keep_alive

Clients = dict[str, ollama.Client]
GREEDY = {"temperature": 0}


def test_a_prompt_is_rendered_with_the_chat_template(clients: Clients) -> None:
    answer = clients["thinks"].generate(model="test", prompt="u", system="s", options=GREEDY)
    assert (answer.response, answer.thinking) == ("It is one.", "A number; say one.")
    assert (answer.done, answer.done_reason) == (True, "stop")
    parts = list(clients["thinks"].generate(model="test", prompt="u", stream=True, options=GREEDY))
    assert "".join(one.response or "" for one in parts) == answer.response
    assert "".join(one.thinking or "" for one in parts) == answer.thinking


def test_raw_prompts_are_continued_without_a_template(clients: Clients, servers: Any) -> None:
    for name, options in (("thinks", {"raw": True}), ("continues", {})):
        answer = clients[name].generate(
            model="test", prompt="u", options={**GREEDY, "num_predict": 4}, **options
        )
        assert answer.prompt_eval_count == len(servers[name].session.tokenize("u"))
        assert answer.thinking is None


def test_context_continues_an_earlier_answer(clients: Clients, servers: Any) -> None:
    client = clients["continues"]
    options = {**GREEDY, "num_predict": 2}
    first = client.generate(model="test", prompt="x", options=options)
    session = servers["continues"].session
    assert first.context[: first.prompt_eval_count] == session.tokenize("x")
    assert len(first.context) == first.prompt_eval_count + first.eval_count
    again = client.generate(model="test", prompt="y", context=first.context, options=options)
    rest = session.tokenize("y", add_special=False)
    assert again.context[: again.prompt_eval_count] == [*first.context, *rest]


def test_a_request_without_a_prompt_only_loads_the_model(clients: Clients) -> None:
    answer = clients["thinks"].generate(model="test", keep_alive=0)
    assert (answer.response, answer.done, answer.done_reason) == ("", True, "load")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"template": "{{ .Prompt }}"}, "template is not supported"),
    ({"images": ["aGk="]}, "does not accept images"),
    ({"suffix": "y"}, "no tokens for filling in the middle"),
    ({"raw": True, "system": "s"}, "raw and system exclude each other"),
    ({"raw": 1}, "raw must be true or false"),
    ({"context": [1.5]}, "context must be a list of token ids"),
    ({"context": [10**9]}, "token"),
    ({"context": [5] * 5000}, "The prompt is too long"),
    ({"prompt": 1}, "prompt must be a string"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG)
def test_a_bad_request_is_refused(
    servers: dict[str, Server], wrong: dict[str, Any], said: str
) -> None:
    answer = servers["thinks"].post("/api/generate", {"prompt": "u"} | wrong)
    assert answer.status_code == 400
    assert said in answer.json()["error"]


def test_keep_alive_is_seconds_or_a_duration() -> None:
    for given, seconds in (("1h30m", 5400), ("300", 300), (5, 5), ("-1s", -1), ("1.5ms", 0.0015)):
        assert keep_alive(Fields({"keep_alive": given})) == pytest.approx(seconds)
    assert keep_alive(Fields({})) is None
