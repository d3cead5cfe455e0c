"""Fuzzed requests to every endpoint: each is answered, and other clients are served."""

from __future__ import annotations

import copy
import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import fuzz
import httpx
import pytest
from bodies import BODIES, PATHS, Raw, damaged, deep, write_model, written

PATIENCE = 60.0
"""Seconds for an answer to a fuzzed request; most take milliseconds."""
SERVED = 10.0
"""Seconds for an answer to another client's small request."""

DIGITS = b"9" * 5000
HUGE: list[Any] = [
    ["x"] * 150_000, [1] * 200_000, [[]] * 100_000, [{}] * 100_000,
    {str(i): 1 for i in range(60_000)},
    [["a", 1]] * 60_000, ["x" * 1000] * 500, "x" * 900_000, "\ud800" * 50_000, "\0" * 100_000,
    " " * 900_000, "\n" * 400_000, "<tool_call>" * 40_000, deep(250), [deep(200)] * 100,
    {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(5000)}},
    {"anyOf": [{"$ref": "#/$defs/a"}] * 3000, "$defs": {"a": {"enum": list(range(3000))}}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 20}}},
    {"type": "string", "pattern": "^(((x?){8}){8}){8}$"},
    {"type": "string", "pattern": "^(a{1," + "9" * 5000 + "})$"},
    'root ::= ' + "(" * 60 + '"a"' + ")?" * 60, "root ::= root root", 'root ::= "a"{1000}{1000}',
    Raw("9" * 5000), Raw("-" + "9" * 900), Raw("1e999"), Raw("1e-999"), Raw("0." + "1" * 5000),
]  # fmt: skip
"""Values that are larger than in any real request."""

HEADERS: list[tuple[bytes, bytes]] = [
    (b"Content-Length", DIGITS), (b"Content-Length", b"-1"), (b"Content-Length", b"1e3"),
    (b"Content-Length", b"+5"), (b"Content-Length", b"99999999999999999999"),
    (b"Transfer-Encoding", b"chunked"), (b"Transfer-Encoding", b"gzip, chunked"),
    (b"Content-Encoding", b"gzip"), (b"Expect", b"100-continue"), (b"Upgrade", b"h2c"),
    (b"Authorization", b"Bearer \xff\xfe"), (b"Host", b"["), (b"Host", DIGITS), (b"Host", b""),
    (b"Host", b"127.0.0.1:" + DIGITS), (b"Origin", b"http://[::1"), (b"Origin", b"null"),
    (b"X-Forwarded-For", b"1.2.3.4," * 1000), (b"Content-Type", b"\x01"),
    (b"X-Long", b"x" * 99_999),
    (b"Range", b"bytes=" + DIGITS), (b"Cookie", b";" * 9999), (b"", b"x"), (b"A B", b"x"),
]  # fmt: skip


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The address of a server in its own process, which must still run at the end."""
    model = write_model(tmp_path_factory.mktemp("fuzz"))
    command = [sys.executable, "-m", "specllama", "serve", "-m", str(model), "--port", "0"]
    options = ["-t", "1", "-ngl", "0", "-np", "4", "--timeout", "20", "--idle-timeout", "5"]
    server = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    said: list[str] = []
    try:
        assert server.stderr is not None
        url = server.stderr.readline().split()[-1]
        reading = threading.Thread(target=said.extend, args=(server.stderr,))
        reading.start()
        yield "127.0.0.1", int(url.rsplit(":", 1)[1])
        assert server.poll() is None
        server.terminate()
        assert server.wait(60) == 0
        reading.join()
        assert not [
            line for line in said if "Traceback" in line or "Internal server error" in line
        ], said
    finally:
        server.kill()
        server.communicate()


def mutated(value: Any, rng: random.Random) -> Any:
    """Return a body with damaged or huge parts."""
    kind = rng.random()
    if kind < 0.35:
        name = rng.choice(list(value))
        return value | {name: rng.choice(HUGE)}
    if kind < 0.45:  # in a field for schemas
        schema = rng.choice(HUGE)
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        return value | rng.choice(
            [
                {"tools": [tool] * rng.choice([1, 40])},
                {"response_format": form},
                {"grammar": schema},
            ]
        )
    for _ in range(rng.choice([1, 1, 2, 3])):
        value = damaged(value, rng)
    return value


def request(rng: random.Random) -> tuple[bytes, bool]:
    """Return the bytes of a request, and whether its body has the announced length."""
    path, body = rng.choice(BODIES)
    value: Any = copy.deepcopy(body)
    content = written(mutated(value, rng))
    if rng.random() < 0.15:
        at, n = rng.randrange(len(content) + 1), rng.randrange(20)
        content = content[:at] + rng.choice([b"", b"\0" * n, b"\xff", DIGITS]) + content[at + n :]
    if rng.random() < 0.05:
        content = rng.choice([b"", b"null", b"[]", b"\xef\xbb\xbf{}", b"{" * 9999, DIGITS, b"{}"])
    method = b"POST"
    if rng.random() < 0.1:
        path = rng.choice(PATHS) + rng.choice(["", "?" + "a=" * 2000, "?n=" + "9" * 5000])
        method = rng.choice([b"GET", b"PUT", b"DELETE", b"OPTIONS", b"X" * 500])
    headers = {b"Host": b"127.0.0.1", b"Content-Length": str(len(content)).encode()}
    if rng.random() < 0.15:
        headers |= dict(rng.sample(HEADERS, rng.choice([1, 1, 2])))
    lines = [method + b" " + path.encode("latin-1") + b" HTTP/1.1", b"Connection: close"]
    lines += [name + b": " + value for name, value in headers.items()]
    length = headers[b"Content-Length"]
    is_whole = length == str(len(content)).encode() and b"Transfer-Encoding" not in headers
    return b"\r\n".join([*lines, b"", content]), is_whole


def answered(address: tuple[str, int], sent: bytes, is_whole: bool) -> tuple[int, str, bytes]:
    """Send a request; return status, content type and body of the answer. The status is 0 without
    an answer. An incomplete request is broken off, so that the server does not wait for the
    rest."""
    with socket.create_connection(address, timeout=PATIENCE) as client:
        sending = threading.Thread(target=_send, args=(client, sent, is_whole), daemon=True)
        sending.start()
        try:
            got = b"".join(iter(lambda: client.recv(1 << 16), b""))
        except ConnectionResetError:  # it did not read the body to its end
            got = b""
        sending.join(PATIENCE)
    head, _, body = got.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 100"):
        head, _, body = body.partition(b"\r\n\r\n")
    if not head:
        return 0, "", b""
    fields = dict(line.lower().split(b": ", 1) for line in head.splitlines()[1:] if b": " in line)
    if fields.get(b"transfer-encoding") == b"chunked":
        body = _joined(body)
    return int(head.split()[1]), fields.get(b"content-type", b"").decode(), body


def _send(client: socket.socket, sent: bytes, is_whole: bool) -> None:
    with suppress(OSError):  # the server need not read a refused request to its end
        client.sendall(sent)
        if not is_whole:
            client.shutdown(socket.SHUT_WR)


def _joined(chunked: bytes) -> bytes:
    body = b""
    while chunked:
        size, _, rest = chunked.partition(b"\r\n")
        n = int(size, 16)
        body, chunked = body + rest[:n], rest[n + 2 :]
    return body


def check(index: int, sent: bytes, is_whole: bool, answer: tuple[int, str, bytes]) -> int:
    """Check an answer; return its status."""
    status, kind, body = answer
    case = (index, sent[:300], status, body[:300])
    assert status < 500 or status == 503, case
    assert b"server_error" not in body or status == 503, case
    if status == 0:
        assert not is_whole or len(sent) > 100_000, case
    elif kind.startswith("application/json") and body:
        said = json.loads(body)
        assert (status < 400) != ("error" in said and bool(said["error"])), case
    elif status >= 400:
        assert not body, case
    return status


class Steady:
    """A client that sends small requests all the time.

    Attributes:
        slowest: Seconds of its slowest answer.
        n: Number of its answers.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self.slowest = 0.0
        self.n = 0
        self._url = f"http://{address[0]}:{address[1]}/v1/completions"
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Steady:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            with httpx.Client(timeout=PATIENCE) as client:
                while not self._ended.is_set():
                    began = time.monotonic()
                    answer = client.post(self._url, json={"prompt": "ab", "max_tokens": 2})
                    self.slowest = max(self.slowest, time.monotonic() - began)
                    self.n += 1
                    assert answer.status_code == 200, answer.text
                    time.sleep(0.05)
        except BaseException as error:
            self._error = error


@pytest.mark.parametrize("n_cases", fuzz.sizes(500))
def test_every_fuzzed_request_is_answered_and_others_are_served(
    address: tuple[str, int], n_cases: int
) -> None:
    statuses: Counter[int] = Counter()
    with Steady(address) as steady:
        for i in range(n_cases):
            sent, is_whole = request(fuzz.case("bodies", i))
            answer = answered(address, sent, is_whole)
            statuses[check(i, sent, is_whole, answer)] += 1
            assert steady.slowest < SERVED, i
    assert steady.n > 0
    assert statuses[400] > n_cases / 4
    assert statuses[200] > 0
