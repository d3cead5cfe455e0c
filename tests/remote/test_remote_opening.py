"""Errors of sessions that open a target on a server."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from prompts import PROMPTS
from random_model import write_dense
from serving import Server, serve
from session_options import EXACT, EXACT_HERE, FIXED
from specllama import ArgumentError, ModelError, RemoteError, SpecllamaError, SpecSession
from specllama.__main__ import main
from specllama.session import BUNDLED_DRAFT

MODULE = PROMPTS["module"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    options = EXACT | FIXED | {"verifies": True}
    with SpecSession(None, None, **options) as session, serve(session) as running:
        yield running


@pytest.mark.parametrize(
    "options",
    [
        {"model": "x.gguf"}, {"kv_type": "f16"}, {"exact": True}, {"n_ctx": 100},
        {"verifies": True}, {"cache_ram": 5}, {"lora": "x"},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_the_server_decides_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ArgumentError, match=f"{name} is set on the server of the target"):
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
        ({"target": "http://192.168.0.300:8080"}, "must be the URL of a server"),
        ({"target": "http://127.0.0.1:8080\r"}, "must be the URL of a server"),
        ({"target": "http://name:password@x"}, "must be the URL of a server"),
        ({"target": "http://x?y=1"}, "must be the URL of a server"),
        ({"target": "http://x#y"}, "must be the URL of a server"),
        ({"target": 5}, "target must be a str"),
        ({"target_key": 5}, "target_key must be a str"),
        ({"target_key": "a\nb"}, "not printable"),
        ({"target_key": ""}, "is empty"),
        ({"target_timeout": 0}, "target_timeout must be above 0"),
        ({"target_timeout": "x"}, "target_timeout must be a number"),
        ({"n_seq": 0}, "n_seq must be from 1"),
        ({"spec_length": 65}, "spec_length must be from 1 to 64"),
        ({"cascade": "off"}, "cascade must be True or False"),
        ({"n_threads": "x"}, "^n_threads must be a whole number"),
        ({"draft": BUNDLED_DRAFT, "draft_n_threads": "x"}, "draft_n_threads must be a whole"),
        ({"draft": BUNDLED_DRAFT, "draft_n_gpu_layers": 1.5}, "draft_n_gpu_layers must be a whole"),
        ({"draft": BUNDLED_DRAFT, "draft_device": 5}, "draft_device must be a str"),
        ({"draft": BUNDLED_DRAFT, "draft_kv_type": 5}, "draft_kv_type must be a str"),
        ({"draft": "mtp"}, "needs the model in this process"),
    ],
)
def test_bad_target_arguments_are_refused(
    server: Server, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        SpecSession(**({"target": server.url} | options))


def test_the_scheme_of_a_url_may_be_in_capitals(server: Server) -> None:
    url = server.url.replace("http", "HTTP", 1)
    with SpecSession(target=url, draft="ngram") as session:
        assert session.generate(MODULE, max_tokens=5).stats.generated_tokens == 5


def test_a_draft_model_with_another_vocabulary_than_the_server_is_refused(
    server: Server, tmp_path: Path
) -> None:
    other = tmp_path / "other.gguf"
    write_dense(other)
    description = server.session.model_description
    with pytest.raises(ModelError, match="another vocabulary") as caught:
        SpecSession(target=server.url, draft=other)
    assert description in str(caught.value)
    assert server.url in str(caught.value)


def test_arguments_are_checked_before_a_server_is_asked() -> None:
    for options in ({"n_seq": 0}, {"spec_tree": 9}, {"n_threads": "x"}, {"cascade": 2}):
        (name,) = options
        with pytest.raises(ArgumentError, match=f"^{name} must be"):
            SpecSession(target="http://127.0.0.1:1", **options)


def test_an_unreachable_server_is_refused() -> None:
    with pytest.raises(RemoteError, match=r"Cannot reach http://127\.0\.0\.1:1"):
        SpecSession(target="http://127.0.0.1:1")


def test_the_chat_command_uses_a_served_target(
    server: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    template = tmp_path / "template"
    template.write_text("{% for one in messages %}{{ one.content }}{% endfor %}")
    expected = server.session.generate(MODULE, max_tokens=9).text
    arguments = ["-p", MODULE, "-n", "9", "--temp", "0", "--chat-template-file", str(template)]
    assert main(["chat", "-u", server.url, *arguments]) == 0
    assert capfd.readouterr().out.strip() == expected.strip()


def test_target_key_is_sent_to_the_server() -> None:
    options = EXACT | {"draft": None, "verifies": True, "exact": EXACT_HERE}
    key = "secret \N{LATIN SMALL LETTER E WITH ACUTE}"
    with SpecSession(**options) as session, serve(session, api_keys=(key,)) as server:
        for wrong in (None, "secret"):
            with pytest.raises(RemoteError, match="target_key"):
                SpecSession(target=server.url, target_key=wrong)
        expected = session.generate(MODULE, max_tokens=5).tokens
        with SpecSession(target=server.url, target_key=key) as remote:
            assert remote.generate(MODULE, max_tokens=5).tokens == expected


class Peer(BaseHTTPRequestHandler):
    """Answers correctly, except for one detail."""

    wrong = ""
    status = 200

    def do_GET(self) -> None:
        about = {
            "n_ctx": 512, "n_vocab": 1000, "bos": 1, "eos": 2, "n_threads": 1,
            "max_draft_length": 8, "vocabulary": "0" * 16, "fim": [-1] * 5, "decode_seconds": [],
            "chat_template": None, "description": "x", "kernels": "", "drafts": False,
        }  # fmt: skip
        if self.path.endswith("vocabulary"):
            pieces = [f"{token} " for token in range(1000)]
            self.say({"pieces": pieces, "hidden": [], "ends": [2], "fingerprint": "0" * 16})
            return
        self.say(about | ({"n_ctx": math.inf} if self.wrong == "number" else {}))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        name = "a\nb" if self.wrong == "name" else "1"
        token: Any = {"large token": 2**40, "token": "x"}.get(self.wrong, 5)
        self.say({"id": name, "tokens": [token], "n": 1, "done": False})

    def do_DELETE(self) -> None:
        self.say({})

    def say(self, told: dict[str, Any]) -> None:
        body = b"<html>" if self.wrong == "page" else json.dumps(told).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        if self.wrong == "packing":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("wrong", "status", "message"),
    [
        ("number", 200, r'"n_ctx" is inf, not a whole number from 1 to \d+\.'),
        ("name", 200, r'"id" is .a\\nb., not the name'),
        ("large token", 200, r'"tokens" is 1099511627776, not a whole number from 0 to 999\.'),
        ("token", 200, "\"tokens\" is 'x', not a whole number"),
        ("packing", 200, "sent a compressed answer .*'gzip'"),
        ("page", 200, "sent no JSON object"),
        ("page", 413, r"answered with HTTP status 413\.$"),
        ("page", 301, r"failed with HTTP status 301\."),
        ("page", 502, r"Cannot reach http.*: HTTP status 502\."),
    ],
)
def test_wrong_answers_of_a_server_give_one_sentence(wrong: str, status: int, message: str) -> None:
    peer = type("Wrong", (Peer,), {"wrong": wrong, "status": status})
    with ThreadingHTTPServer(("127.0.0.1", 0), peer) as there:
        threading.Thread(target=there.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{there.server_port}"
        with (
            pytest.raises(SpecllamaError, match=message),
            SpecSession(target=url, draft=None) as session,
        ):
            session.generate([1, 2], max_tokens=5)
        there.shutdown()


def test_a_subclass_can_open_a_served_target(server: Server) -> None:
    class Mine(SpecSession):
        def __init__(self, url: str) -> None:
            super().__init__(target=url)

    with Mine(server.url) as session:
        assert session.n_ctx == server.session.n_ctx
