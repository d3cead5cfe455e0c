"""When models are loaded and unloaded, with stand-ins for their processes."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from specllama.server.error import ApiError
from specllama.server.models import loaded_models
from specllama.server.models.child import LoadError
from specllama.server.models.loaded_models import LoadedModels
from specllama.server.models.served_model import ModelEntry


class StandIn:
    """Stands in for a model's process. It is loaded when `may_load` is set."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.may_load = asyncio.Event()
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def ready(self) -> None:
        await self.may_load.wait()
        if "broken" in self.name:
            raise LoadError("there is no such file.")

    async def ask(self, path: str, body: bytes | None = None) -> bytes:
        return b"{}"

    def end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(0)

    async def stop(self) -> None:
        self.end()


class Scene:
    """Models and their stand-ins.

    Attributes:
        models: The tested object.
        started: All processes, in order.
    """

    def __init__(self, names: Sequence[str], most: int, **options: Any) -> None:
        entries = [ModelEntry(name, [], Path(name)) for name in names]
        options = {"idle": math.inf, "most_waiting": 64} | options
        self.models = LoadedModels(entries, most, **options)
        self.started: list[StandIn] = []

    async def start(self, name: str, arguments: Sequence[str]) -> StandIn:
        one = StandIn(name)
        self.started.append(one)
        if name not in ("slow", "broken-slow"):
            one.may_load.set()
        return one

    def using(self, name: str) -> AbstractAsyncContextManager[Any]:
        return self.models.using(self.models.models[name])

    async def use(self, name: str) -> None:
        async with self.using(name):
            pass

    def begin(self, name: str) -> Asked:
        return Asked(self, name)

    @property
    def states(self) -> dict[str, str]:
        return {name: one.state for name, one in self.models.models.items()}

    @property
    def names(self) -> list[str]:
        """The models whose processes were started, in order."""
        return [one.name for one in self.started]


class Asked:
    """A request in the background, which runs until `end` or `leave`."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.answers = asyncio.Event()
        self._end = asyncio.Event()
        self._task = asyncio.ensure_future(self._run(scene, name))

    async def _run(self, scene: Scene, name: str) -> None:
        async with scene.using(name):
            self.answers.set()
            await self._end.wait()

    async def end(self) -> None:
        self._end.set()
        await self._task

    async def leave(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def played(test: Callable[[Callable[..., Scene]], Coroutine[Any, Any, None]]) -> Any:
    """Turn a coroutine into a test. It gets a function that makes scenes."""

    def run(monkeypatch: pytest.MonkeyPatch) -> None:
        async def play() -> None:
            scenes: list[Scene] = []

            def make(*names: str, most: int = 1, **options: Any) -> Scene:
                scene = Scene(names, most, **options)
                scenes.append(scene)
                monkeypatch.setattr(loaded_models.Child, "start", scene.start)
                return scene

            await test(make)
            for one in scenes:
                for child in one.started:
                    child.may_load.set()
                await one.models.close()

        asyncio.run(asyncio.wait_for(play(), 60))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


Maker = Callable[..., Scene]


@played
async def test_a_model_is_loaded_once_for_all_waiting_requests(make: Maker) -> None:
    scene = make("slow")
    asked = [scene.begin("slow") for _ in range(3)]
    await settled()
    assert scene.states == {"slow": "loading"}
    assert scene.models.n_waiting == 3
    scene.started[0].may_load.set()
    for one in asked:
        await one.answers.wait()
        await one.end()
    await scene.use("slow")
    assert scene.names == ["slow"]


@played
async def test_the_least_recently_used_model_makes_room(make: Maker) -> None:
    scene = make("a", "b", "c", most=2)
    for name in ("a", "b", "a", "c"):
        await scene.use(name)
    assert scene.states == {"a": "loaded", "b": "unloaded", "c": "loaded"}
    assert scene.names == ["a", "b", "c"]


@played
async def test_a_model_that_answers_is_not_unloaded(make: Maker) -> None:
    scene = make("a", "b")
    asked = scene.begin("a")
    await asked.answers.wait()
    other = scene.begin("b")
    await settled()
    assert scene.states == {"a": "loaded", "b": "unloaded"}
    late = scene.begin("a")  # waits; otherwise "b" might wait for ever
    await settled()
    assert not late.answers.is_set()
    await asked.end()
    await other.answers.wait()
    assert scene.states == {"a": "unloaded", "b": "loaded"}
    await other.end()
    await late.answers.wait()
    await late.end()
    assert scene.names == ["a", "b", "a"]


@played
async def test_an_idle_model_makes_room_before_one_that_answers(make: Maker) -> None:
    scene = make("a", "b", "c", most=2)
    asked = scene.begin("a")
    await asked.answers.wait()
    await scene.use("b")
    await scene.use("c")
    assert scene.states == {"a": "loaded", "b": "unloaded", "c": "loaded"}
    await asked.end()


@played
async def test_a_client_that_disconnects_while_waiting_frees_its_place(make: Maker) -> None:
    scene = make("a", "b", most_waiting=2)
    asked = scene.begin("a")
    await asked.answers.wait()
    left = scene.begin("b")
    late = scene.begin("a")
    await settled()
    with pytest.raises(ApiError, match="busy"):
        await scene.use("b")
    await left.leave()
    await late.answers.wait()  # no request needs the place of "a"
    assert scene.names == ["a"]
    assert scene.models.n_waiting == 0
    await asked.end()
    await late.end()


@played
async def test_a_load_error_fails_only_the_requests_for_that_model(
    make: Maker,
) -> None:
    scene = make("a", "broken-slow", most=2)
    await scene.use("a")
    asked = [asyncio.ensure_future(scene.use("broken-slow")) for _ in range(2)]
    await settled()
    scene.started[1].may_load.set()
    for one in asked:
        with pytest.raises(ApiError, match=r"could not be loaded: there is no such file\.$"):
            await one
    await scene.use("a")
    # It is not retried for a while: each attempt could unload another model.
    with pytest.raises(ApiError, match="could not be loaded"):
        await scene.use("broken-slow")
    assert scene.names == ["a", "broken-slow"]
    assert scene.states == {"a": "loaded", "broken-slow": "unloaded"}


@played
async def test_an_idle_model_sleeps_and_is_loaded_again(make: Maker) -> None:
    scene = make("a", idle=0.01)
    asked = scene.begin("a")
    await asked.answers.wait()
    await asyncio.sleep(0.05)
    assert scene.states == {"a": "loaded"}
    await asked.end()
    while scene.states != {"a": "sleeping"}:
        await asyncio.sleep(0.01)
    await scene.use("a")
    assert scene.names == ["a", "a"]


@played
async def test_a_process_that_has_ended_is_started_again(make: Maker) -> None:
    scene = make("a")
    await scene.use("a")
    scene.started[0].end()
    await settled()
    assert scene.states == {"a": "unloaded"}
    await scene.use("a")
    assert scene.names == ["a", "a"]


@played
async def test_waiting_requests_are_refused_at_shutdown(make: Maker) -> None:
    scene = make("slow")
    asked: Awaitable[None] = asyncio.ensure_future(scene.use("slow"))
    await settled()
    scene.models.end_answers()
    with pytest.raises(ApiError, match="The server is shutting down"):
        await asked


@played
async def test_models_take_turns_with_one_in_memory(make: Maker) -> None:
    """All requests are answered, in any order."""
    scene = make("a", "b", "c")
    await asyncio.gather(*(scene.use("abc"[i % 3]) for i in range(30)))
    assert sorted(scene.names) == ["a", "b", "c"]
