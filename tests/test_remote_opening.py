"""Sessions with a target on a server that cannot be opened, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import EXACT, FIXED
from prompts import PROMPTS
from random_model import write_dense
from serving import Server, serve
from specllama import ArgumentError, ModelError, RemoteError, SpecSession

MODULE = PROMPTS["module"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    options = EXACT | FIXED | {"offers": True}
    with SpecSession(None, None, **options) as session, serve(session) as running:
        yield running


@pytest.mark.parametrize(
    "options",
    [
        {"model": "x.gguf"}, {"kv_type": "f16"}, {"exact": True}, {"n_ctx": 100}, {"offers": True},
        {"corpus": "x"}, {"ngram_order": 3}, {"draft_p_min": 0.5},
    ],
    ids=str,
)  # fmt: skip
def test_options_of_the_server(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ArgumentError, match=f"{name} is for the server of the target to decide"):
        SpecSession(target="http://127.0.0.1:1", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "127.0.0.1:8080"}, "must be the URL of a server"),
        ({"target": "ftp://x"}, "must be the URL of a server"),
        ({"target": "http://"}, "must be the URL of a server"),
        ({"target": "http://[::1"}, "must be the URL of a server"),
        ({"target": "http://x:port"}, "must be the URL of a server"),
        ({"target": "http://x:99999"}, "must be the URL of a server"),
        ({"target": 5}, "target must be a str"),
        ({"target_mode": "fast"}, "target_mode must be"),
        ({"target_key": 5}, "target_key must be a str"),
        ({"target_key": "a\nb"}, "not printable"),
        ({"target_key": ""}, "is empty"),
        ({"target_timeout": 0}, "target_timeout must be above 0"),
        ({"target_timeout": "x"}, "target_timeout must be a number"),
        ({"n_seq": 0}, "n_seq must be from 1"),
        ({"spec_length": 65}, "spec_length must be from 1 to 64"),
        ({"draft": "mtp"}, "needs the model here"),
    ],
)
def test_arguments_that_cannot_be_used(
    server: Server, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        SpecSession(**({"target": server.url} | options))


def test_a_draft_model_of_another_vocabulary(server: Server, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    write_dense(other)
    description = server.session.model_description
    with pytest.raises(ModelError, match="another vocabulary") as caught:
        SpecSession(target=server.url, draft=other)
    assert description in str(caught.value)
    assert server.url in str(caught.value)


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(RemoteError, match=r"Cannot reach http://127\.0\.0\.1:1"):
        SpecSession(target="http://127.0.0.1:1")


def test_keys() -> None:
    options = EXACT | {"draft": None, "offers": True, "exact": True}
    key = "secret \N{LATIN SMALL LETTER E WITH ACUTE}"
    with SpecSession(**options) as session, serve(session, api_key=key) as server:
        for wrong in (None, "secret"):
            with pytest.raises(RemoteError, match="target_key"):
                SpecSession(target=server.url, target_key=wrong)
        expected = session.generate(MODULE, max_tokens=5).tokens
        for mode in ("lockstep", "ahead"):
            with SpecSession(target=server.url, target_key=key, target_mode=mode) as remote:
                assert remote.generate(MODULE, max_tokens=5).tokens == expected
