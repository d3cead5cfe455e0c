"""Two hundred clients that draft, break off, return and vanish."""

from __future__ import annotations

import asyncio
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
from session_options import EXACT, EXACT_FLAG, EXACT_HERE
from specllama import SpecSession
from specllama.formats.wire import Digest

N_GENERATIONS = 7200
N_CLIENTS = 200
NAMES = ("module", "function", "json", "english", "csv", "one token")
N = 30

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc"),
]

Request = tuple[str, int]


class VanishedError(Exception):
    """The client disconnected on purpose."""


def body(request: Request, generated: list[int]) -> dict[str, Any]:
    name, seed = request
    options = {"max_tokens": N, "seed": seed, "temperature": 0.8 if seed else 0.0}
    return {"prompt": PROMPTS[name], "generated": generated, "options": options}


class Load:
    """Clients of a server, and the outcomes of their generations.

    Attributes:
        outcomes: Number of generations, by outcome.
        memory: Resident bytes of the server, by number of generations.
    """

    def __init__(self, url: str, pid: int, expected: dict[Request, list[int]]) -> None:
        self.outcomes: Counter[str] = Counter()
        self.memory: list[int] = []
        self._url = url
        self._pid = pid
        self._expected = expected
        self._random = random.Random(1)

    async def run(self) -> None:
        await asyncio.gather(*(self._client(i) for i in range(N_CLIENTS)))
        async with httpx.AsyncClient(base_url=self._url, timeout=300) as client:
            while True:  # until the last abandoned generation has ended
                load = (await client.get("/health")).json()
                if load["running"] == load["waiting"] == 0:
                    break
                await asyncio.sleep(0.1)
            request = next(iter(self._expected))
            opened = [await client.post("/v1/verify", json=body(request, [])) for _ in range(4)]
            assert all(one.is_success for one in opened)

    async def _client(self, i: int) -> None:
        address = f"127.0.1.{i}"  # one each: the open generations of an address are limited
        transport = httpx.AsyncHTTPTransport(local_address=address)
        async with httpx.AsyncClient(
            base_url=self._url, timeout=300, transport=transport
        ) as client:
            while len(self.memory) < N_GENERATIONS:
                pages = Path(f"/proc/{self._pid}/statm").read_text().split()[1]
                self.memory.append(4096 * int(pages))
                self.outcomes[await self._generation(client)] += 1

    async def _generation(self, client: httpx.AsyncClient) -> str:
        request = self._random.choice(list(self._expected))
        coming = self._expected[request]
        # The number of tokens at which it vanishes; most clients do not.
        leave = self._random.randrange(1, N) if self._random.random() < 0.3 else N + 1
        generated: list[int] = []
        while True:
            try:
                done = await self._rounds(client, request, generated, coming, leave)
            except VanishedError:
                return "vanished"
            if done:
                return "right" if generated == coming else "wrong"
            self.outcomes["began again"] += 1
            await asyncio.sleep(0.5)  # hundreds of immediate retries would keep the server busy

    def _draft(self, coming: list[int], n: int) -> list[int]:
        right = coming[n : n + self._random.randrange(6)]
        return right if self._random.random() < 0.7 else [*right[:1], 3, 4, 5]

    async def _rounds(
        self, client: httpx.AsyncClient, request: Request, generated: list[int],
        coming: list[int], leave: int,
    ) -> bool:  # fmt: skip
        """Continue the generation; return false if it is gone or the server is full."""
        answer = await client.post("/v1/verify", json=body(request, generated))
        if answer.status_code in (410, 503):
            return False
        told = answer.json()
        prompt, path = told["prompt"], f"/v1/verify/{told['id']}"
        n_rounds = 0
        while True:
            generated += told["tokens"]
            del generated[told["n"] :]
            if told["done"]:
                return True
            if len(generated) >= leave:
                await self._leave(client, path)
            n_rounds += 1
            asked = {
                "round": n_rounds, "n": len(generated), "hash": str(Digest([*prompt, *generated])),
                "draft": self._draft(coming, len(generated)),
            }  # fmt: skip
            answer = await client.post(path, json=asked)
            if self._random.random() < 0.05:  # as if the answer had been lost
                again = await client.post(path, json=asked)
                assert again.status_code in (200, 410), again.text
                if again.is_success:
                    assert again.json() == answer.json()
            if answer.status_code == 410:
                return False
            told = answer.json()

    async def _leave(self, client: httpx.AsyncClient, path: str) -> None:
        if self._random.random() < 0.3:
            await client.delete(path)
        elif self._random.random() < 0.3:
            await client.post(path, content=b'{"round": ')
        raise VanishedError


def test_two_hundred_vanishing_clients_leave_no_slot_occupied(bundled_model: Path) -> None:
    with SpecSession(bundled_model, None, **EXACT, exact=EXACT_HERE) as session:
        expected = {
            (name, seed): session.generate(
                PROMPTS[name], max_tokens=N, seed=seed, temperature=0.8 if seed else 0.0
            ).tokens
            for name in NAMES
            for seed in (0, 1)
        }
    command = [sys.executable, "-m", "specllama", "serve", "-m", str(bundled_model)]
    command += ["--port", "0", "-t", "1", "-ngl", "0"]
    limits = [*EXACT_FLAG, "-kv", "q8_0", "-np", "4", "-c", "1024", "--max-queue", "200"]
    with subprocess.Popen(
        [*command, *limits, "--idle-timeout", "3"], stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        load = Load(server.stderr.readline().split()[-1], server.pid, expected)
        try:
            asyncio.run(load.run())
        finally:
            server.terminate()
        said = server.stderr.read().splitlines()
    assert server.returncode == 0
    told = re.compile(r".{20}(POST|DELETE) /v1/verify\S*: (400|410|503), .+")
    assert said[1:]
    assert all(told.fullmatch(line) for line in said[1:]), said[-3:]
    early, late = load.memory[N_GENERATIONS // 2], load.memory[-1]
    print(dict(load.outcomes), early, late)
    assert load.outcomes["wrong"] == 0
    assert load.outcomes["right"] + load.outcomes["vanished"] == len(load.memory)
    assert load.outcomes["right"] > N_GENERATIONS // 2
    # In four runs the second half of the generations added 0.3 to 0.6 %.
    assert late <= 1.05 * early
