"""Work on clients' data is bounded, fair, and dropped with its client."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from specllama.server.body.pool import Pool
from specllama.server.error import ApiError

SMALL, LARGE = 100, 1 << 17


def run(test: Callable[[Pool], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(test(Pool()), 120)

    asyncio.run(bounded())


def for_ever(begun: threading.Event | None = None) -> None:
    if begun is not None:
        begun.set()
    while True:
        try:
            sum(range(100))
        except Exception:
            raise AssertionError from None


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_pool_returns_results_and_errors_of_the_work() -> None:
    async def test(pool: Pool) -> None:
        assert await pool.run(lambda: threading.current_thread().name, "a", 0) != "MainThread"
        with pytest.raises(ZeroDivisionError):
            await pool.run(lambda: 1 // 0, "a", 0)
        values = await asyncio.gather(*(pool.run(lambda i=i: i, "a", 0) for i in range(500)))
        assert values == list(range(500))

    run(test)


def test_endless_work_is_stopped_and_frees_its_thread() -> None:
    async def test(pool: Pool) -> None:
        works = [asyncio.ensure_future(pool.run(for_ever, "a", SMALL)) for _ in range(4)]
        for one in await asyncio.gather(*works, return_exceptions=True):
            assert isinstance(one, ApiError)
            assert (one.status, one.code) == (400, "too_expensive")
            assert "more than 1.0 s to read" in str(one)
        assert await pool.run(lambda: 5, "b", SMALL) == 5
        await until(lambda: not pool._running)

    run(test)


def test_cancelled_work_is_stopped_or_not_begun() -> None:
    async def test(pool: Pool) -> None:
        begun = [threading.Event() for _ in range(3)]
        works = [
            asyncio.ensure_future(pool.run(lambda one=one: for_ever(one), "a", SMALL))
            for one in begun
        ]
        await until(lambda: begun[0].is_set() and begun[1].is_set())
        for one in works:
            one.cancel()
        before = time.thread_time()
        assert await pool.run(lambda: 5, "b", SMALL) == 5
        await until(lambda: not pool._running)
        assert not begun[2].is_set()
        assert time.thread_time() - before < 1
        for one in works:
            with pytest.raises(asyncio.CancelledError):
                await one

    run(test)


def test_pool_prefers_clients_with_few_and_small_requests() -> None:
    async def test(pool: Pool) -> None:
        ready = threading.Event()
        order: list[str] = []

        def work(name: str) -> Callable[[], None]:
            def wait() -> None:
                ready.wait(60)
                order.append(name)

            return wait

        def put(client: str, n_bytes: int, name: str) -> asyncio.Future[None]:
            return asyncio.ensure_future(pool.run(work(name), client, n_bytes))

        hold = threading.Event()
        works = [
            put("a", 9, "first"),
            asyncio.ensure_future(pool.run(lambda: hold.wait(60) and None, "c", 5)),
        ]
        await asyncio.sleep(0)
        works += [
            put("a", LARGE, "large"),
            put("a", 50, "a50"),
            put("a", 10, "a10"),
            put("b", 99, "b99"),
            put("b", 98, "b98"),
        ]
        await asyncio.sleep(0)
        ready.set()
        await until(lambda: len(order) == 6)  # by one thread, one after the other
        hold.set()
        await asyncio.gather(*works)
        assert order == ["first", "a10", "a50", "b98", "b99", "large"]

    run(test)


def test_large_work_leaves_a_thread_for_small_work() -> None:
    async def test(pool: Pool) -> None:
        hold = threading.Event()
        large = [
            asyncio.ensure_future(pool.run(lambda: hold.wait(60), "a", LARGE)) for _ in range(5)
        ]
        await asyncio.sleep(0)
        assert await pool.run(lambda: 5, "a", SMALL) == 5
        hold.set()
        assert await asyncio.gather(*large) == [True] * 5

    run(test)


def test_large_work_is_not_starved_by_small_work() -> None:
    """The small work is another client's, whose requests never end."""

    async def test(pool: Pool) -> None:
        ended = False

        async def flood() -> None:
            while not ended:
                await pool.run(lambda: time.sleep(0.001), "a", SMALL)

        floods = [asyncio.ensure_future(flood()) for _ in range(8)]
        await until(lambda: len(pool._running) == 2)
        try:
            assert await asyncio.wait_for(pool.run(lambda: 5, "b", LARGE), 60) == 5
        finally:
            ended = True
            await asyncio.gather(*floods)

    run(test)


def test_waiting_does_not_count_as_processor_time() -> None:
    """So a client is not blamed for a busy machine or a lock."""
    if not hasattr(time, "pthread_getcpuclockid"):
        pytest.skip("this system has no such clock")

    async def test(pool: Pool) -> None:
        assert await pool.run(lambda: time.sleep(1.5) or 5, "a", SMALL) == 5

    run(test)
