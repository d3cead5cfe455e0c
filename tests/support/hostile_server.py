"""A server that speaks /v1/verify and SGLang's /generate without a model, and gives some wrong
answers. A random generator chooses them, so each case can be repeated.
"""

from __future__ import annotations

import gzip
import json
import random
import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from fuzz import VALUES, mutated

if TYPE_CHECKING:
    from collections.abc import Iterator

N_VOCAB = 40
_SECONDS = 20.0
"""After this time, a server that floods or drips stops by itself."""


def token(position: int) -> int:
    """Return the token that the server generates at a position."""
    return 3 + position * 7 % 11


class Hostile:
    """Answers requests, most of them correctly.

    Args:
        draws: Source of its faults.
        wrong: The kind of all its faults, one of REPLIES (None: any).
    """

    def __init__(self, draws: random.Random, wrong: str | None = None) -> None:
        self._draws = draws
        self._wrong_kind = wrong
        self._n_right = draws.choice([0, 1, 2, 5, 8, 12])
        self._often = draws.random() < 0.3
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._closed = threading.Event()
        self._lines: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        for line in [self._listening, *self._lines]:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                line, _ = self._listening.accept()
                self._lines.append(line)
                threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with suppress(OSError), line:
            stream = line.makefile("rb")
            while request := stream.readline().split():
                headers = {}
                while (one := stream.readline().strip()) != b"":
                    name, _, value = one.partition(b":")
                    headers[name.lower()] = value.strip()
                body = stream.read(int(headers.get(b"content-length", 0)))
                given = json.loads(body) if body else {}
                self._reply(line, self._answer(request[0], request[1].decode(), given))

    def _wrong(self, kinds: dict[str, Any]) -> bool:
        """Return whether the next answer, which has these kinds of faults, is a wrong one."""
        if self._wrong_kind is not None:
            return self._wrong_kind in kinds
        if self._n_right > 0:
            self._n_right -= 1
            return False
        return self._often or self._draws.random() < 0.5

    def _answer(self, method: bytes, path: str, given: dict[str, Any]) -> Any:
        if path == "/tokenize":
            return {"tokens": [3, 4, 5]}
        if path == "/detokenize":
            return {"content": "x" * len(given["tokens"])}
        if path == "/v1/verify" and method == b"GET":
            return description()
        if path == "/v1/verify/vocabulary":
            return vocabulary()
        if path == "/v1/models":
            return {"data": [{"id": "x", "max_model_len": 200}]}
        if path == "/server_info":
            return {"max_req_input_len": 190}
        if path == "/generate":
            return _of_sglang(given)
        if path == "/v1/verify":
            return {"id": "abc", **self._round(given, [])}
        if path.startswith("/v1/verify/") and method == b"POST":
            return self._round(given, given["draft"])
        return {}

    def _round(self, given: dict[str, Any], draft: list[int]) -> dict[str, Any]:
        if "prompt" in given:
            self._n = len(given["generated"])
            self._most = given["options"].get("max_tokens", 256)
        else:
            self._n = given["n"]
        n_right = 0
        while n_right < len(draft) and draft[n_right] == token(self._n + n_right):
            n_right += 1
        return self._news(n_right + 1, len(draft), n_right)

    def _news(self, n_new: int, n_drafted: int, n_accepted: int) -> dict[str, Any]:
        n_new = min(n_new, self._most - self._n)
        tokens = [token(self._n + i) for i in range(n_new)]
        self._n += n_new
        done = self._n >= self._most
        news = {
            "n": self._n,
            "tokens": tokens,
            "drafted": n_drafted,
            "accepted": min(n_accepted, n_new),
            "seconds": 0.001,
            "done": done,
        }
        return news | ({"finish_reason": "length", "exact": True, "reused": 0} if done else {})

    def _reply(self, line: socket.socket, answer: Any) -> None:
        body = json.dumps(answer).encode()
        if not self._wrong(REPLIES):
            line.sendall(_head(200, len(body)) + body)
            return
        kind = self._wrong_kind or self._draws.choice(["value"] * 40 + list(REPLIES))
        if kind == "value":
            body = json.dumps(mutated(answer, self._draws)).encode()
            line.sendall(_head(200, len(body)) + body)
        else:
            REPLIES[kind](self, line, body)

    def pour(self, line: socket.socket, part: bytes, pause: float = 0.0) -> None:
        """Send the same bytes until the client disconnects."""
        end = time.monotonic() + _SECONDS
        while not self._closed.is_set() and time.monotonic() < end:
            line.sendall(part)
            if pause:
                self._closed.wait(pause)

    def _cut(self, line: socket.socket, body: bytes) -> None:
        whole = _head(200, len(body)) + body
        line.sendall(whole[: self._draws.randrange(len(whole))])
        line.shutdown(socket.SHUT_RDWR)

    def _slow(self, line: socket.socket, body: bytes) -> None:
        whole = _head(200, len(body)) + body
        begin = self._draws.choice([0, 10, len(whole) - len(body)])
        line.sendall(whole[:begin])
        for i in range(begin, len(whole)):
            if self._closed.wait(0.1):
                return
            line.sendall(whole[i : i + 1])

    def _silent(self, line: socket.socket, body: bytes) -> None:
        self._closed.wait(_SECONDS)

    def _endless(self, line: socket.socket, body: bytes) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        self.pour(line, b"10000\r\n" + b"[" * 65536 + b"\r\n")

    def _tiny_chunks(self, line: socket.socket, body: bytes) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        self.pour(line, b"1\r\n \r\n")

    def _endless_headers(self, line: socket.socket, body: bytes) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\n")
        self.pour(line, b"X-More: " + b"x" * 1000 + b"\r\n")

    def _informational(self, line: socket.socket, body: bytes) -> None:
        self.pour(line, b"HTTP/1.1 100 Continue\r\n\r\n" * 50)

    def _promising(self, line: socket.socket, body: bytes) -> None:
        line.sendall(_head(200, 1 << 40))
        self.pour(line, b" " * 65536)

    def _bomb(self, line: socket.socket, body: bytes) -> None:
        packed = gzip.compress(b" " * (64 << 20), 6)
        head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
        line.sendall(head % len(packed) + packed)

    def _flipped(self, line: socket.socket, body: bytes) -> None:
        whole = bytearray(_head(200, len(body)) + body)
        for _ in range(self._draws.randrange(1, 8)):
            whole[self._draws.randrange(len(whole))] = self._draws.randrange(256)
        line.sendall(bytes(whole))
        line.shutdown(socket.SHUT_WR)

    def _failing(self, line: socket.socket, body: bytes) -> None:
        status = self._draws.choice([100, 101, 204, 301, 304, 400, 401, 404, 409, 410, 413, 418,
                                     500, 502, 503, 599, 999])  # fmt: skip
        said = json.dumps({"error": {"message": self._draws.choice(VALUES)}}).encode()
        line.sendall(_head(status, len(said)) + said)
        if status < 200:
            line.shutdown(socket.SHUT_RDWR)

    def _noise(self, line: socket.socket, body: bytes) -> None:
        line.sendall(self._draws.randbytes(self._draws.randrange(1, 5000)))
        line.shutdown(socket.SHUT_RDWR)


REPLIES: dict[str, Any] = {
    "cut": Hostile._cut,
    "slow": Hostile._slow,
    "silent": Hostile._silent,
    "endless": Hostile._endless,
    "tiny chunks": Hostile._tiny_chunks,
    "endless headers": Hostile._endless_headers,
    "informational": Hostile._informational,
    "promising": Hostile._promising,
    "bomb": Hostile._bomb,
    "flipped": Hostile._flipped,
    "failing": Hostile._failing,
    "noise": Hostile._noise,
}


def description() -> dict[str, Any]:
    """Return the answer to GET /v1/verify."""
    return {
        "model": "x", "description": "x", "kernels": "", "n_ctx": 200, "n_vocab": N_VOCAB,
        "n_threads": 1, "vocabulary": "0123456789abcdef", "bos": 1, "eos": 2, "fim": [-1] * 5,
        "chat_template": None, "decode_seconds": [0.01, 0.011], "max_draft_length": 64,
        "max_candidates": 2, "max_draft_tokens": 128,
    }  # fmt: skip


def vocabulary() -> dict[str, Any]:
    """Return the answer to GET /v1/verify/vocabulary."""
    pieces = [f"{one} " for one in range(N_VOCAB)]
    return {"pieces": pieces, "hidden": [1], "ends": [2], "fingerprint": "0123456789abcdef"}


def _of_sglang(given: dict[str, Any]) -> dict[str, Any]:
    ids = given["input_ids"]
    n_top = given.get("top_logprobs_num", 0)
    start = given.get("logprob_start_len", len(ids) - 1)

    def row(i: int) -> list[list[Any]]:
        return [[-0.5 - j, 3 + (token(i) + j) % (N_VOCAB - 3), None] for j in range(n_top)]

    rows = [row(i) for i in range(start, len(ids))]
    return {
        "meta_info": {
            "finish_reason": {"type": "length", "length": 1},
            "cached_tokens": 0,
            "e2e_latency": 0.001,
            "input_token_logprobs": [[None, one, None] for one in ids[start:]],
            "input_top_logprobs": [None, *rows[:-1]],
            "output_top_logprobs": rows[-1:],
        }
    }


def _head(status: int, length: int) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (
        status,
        length,
    )


@contextmanager
def hostile_server(draws: random.Random, wrong: str | None = None) -> Iterator[str]:
    """Run a server; yield its address."""
    server = Hostile(draws, wrong)
    try:
        yield server.url
    finally:
        server.close()
