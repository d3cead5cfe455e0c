"""Two thousand requests, with clients that disconnect, bad bodies, and overload."""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from prompts import PROMPTS
from session_options import EXACT_FLAG, open_exact
from specllama.requests.queue_load import HALF_LIFE, ThroughputMeter

N_REQUESTS = 2000
N_CLIENTS = 24  # more than the slots and the queue hold
NAMES = ("module", "function", "json", "english", "csv", "one token", "emoji", "list")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc"),
]


def body(name: str, seed: int, max_tokens: int) -> dict[str, Any]:
    return {
        "prompt": PROMPTS[name], "seed": seed, "max_tokens": max_tokens,
        "temperature": 0.8 if seed else 0.0,
    }  # fmt: skip


class Load:
    """Clients of a server, and the outcomes of their requests.

    Attributes:
        outcomes: Number of requests, by outcome.
        memory: Resident bytes of the server, by number of requests.
    """

    def __init__(self, url: str, pid: int, expected: dict[tuple[str, int, int], str]) -> None:
        self.outcomes: Counter[str] = Counter()
        self.memory: dict[int, int] = {}
        self._url = url
        self._pid = pid
        self._expected = expected
        self._random = random.Random(1)
        self._n_done = 0

    async def run(self) -> None:
        limits = httpx.Limits(max_connections=N_CLIENTS)
        async with httpx.AsyncClient(base_url=self._url, timeout=120, limits=limits) as client:
            await asyncio.gather(*(self._client(client) for _ in range(N_CLIENTS)))
            for _ in range(600):  # until the last abandoned request has ended
                if (running := (await client.get("/health")).json()["running"]) == 0:
                    break
                await asyncio.sleep(0.1)
            assert running == 0

    async def _client(self, client: httpx.AsyncClient) -> None:
        while self._n_done < N_REQUESTS:
            self._n_done += 1
            pages = Path(f"/proc/{self._pid}/statm").read_text().split()[1]
            self.memory[self._n_done] = 4096 * int(pages)
            self.outcomes[await self._request(client)] += 1

    async def _request(self, client: httpx.AsyncClient) -> str:
        kind = self._random.random()
        request = self._random.choice(list(self._expected))
        path = "/v1/completions"
        if kind < 0.05:
            answer = await client.post(path, content=b'{"prompt": ')
            return "malformed" if answer.json()["error"]["type"] and answer.is_error else "?"
        if kind < 0.10:
            answer = await client.post(path, json={"prompt": "x" * 30_000})
            return "oversized" if answer.status_code == 413 and answer.json()["error"] else "?"
        while True:
            wanted = body(*request) | {"stream": kind < 0.6}
            async with client.stream("POST", path, json=wanted) as answer:
                if answer.status_code == 503:
                    self.outcomes["had to wait"] += 1
                elif kind < 0.2:
                    async for _ in answer.aiter_raw():
                        return "left"
                else:
                    text = await _text(answer, streamed=kind < 0.6)
                    return "right" if text == self._expected[request] else "wrong"
            await asyncio.sleep(0.05)


async def _text(answer: httpx.Response, *, streamed: bool) -> str:
    if not streamed:
        return str(json.loads(await answer.aread())["choices"][0]["text"])
    events = [line async for line in answer.aiter_lines() if line.startswith("data: {")]
    return "".join(json.loads(event[6:])["choices"][0]["text"] for event in events)


def test_two_thousand_mixed_requests_get_right_answers_in_bounded_memory() -> None:
    with open_exact(None, None) as session:
        expected = {
            (name, seed, n): session.generate(**body(name, seed, n)).text
            for name in NAMES
            for seed, n in ((0, 24), (1, 8), (2, 60))
        }
    command = [sys.executable, "-m", "specllama", "serve", "--port", "0", "-t", "1", "-ngl", "0"]
    limits = [*EXACT_FLAG, "-np", "4", "-c", "1024", "--max-queue", "16"]
    server = subprocess.Popen(
        [*command, *limits, "--max-body", "20000"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr is not None
        load = Load(server.stderr.readline().split()[-1], server.pid, expected)
        # It logs refusals to stderr, which nobody reads meanwhile.
        asyncio.run(load.run())
        server.terminate()
        said = server.stderr.read().splitlines()
        assert server.wait(30) == 0
    finally:
        server.kill()
        server.communicate()
    told = re.compile(".{20}POST /v1/completions: (200|400|413|503|client disconnected), .+")
    assert said[1:]
    assert all(told.fullmatch(line) for line in said[1:]), said[-3:]
    print(dict(load.outcomes), load.memory[200], load.memory[N_REQUESTS])
    assert set(load.outcomes) == {"right", "left", "malformed", "oversized", "had to wait"}
    # The process has about 100 MB. A leak of 6 kB per request would exceed this.
    assert load.memory[N_REQUESTS] <= 1.05 * load.memory[200]


def test_the_throughput_meter_follows_recent_load() -> None:
    """After a different load, the rate soon follows the new one."""
    meter = ThroughputMeter()
    assert meter.tokens_per_second == 0
    for tokens in (10, 100):
        for _ in range(10 * int(HALF_LIFE)):
            meter.add(tokens, 1.0)
        assert meter.tokens_per_second == pytest.approx(tokens, rel=0.01)
