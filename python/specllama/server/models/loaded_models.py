"""Loads models when requests need them, and unloads others to make room."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from specllama.server.error import ApiError, encoded, log
from specllama.server.models.child import GONE, Child, LoadError
from specllama.server.models.served_model import ModelEntry, ServedModel

_RETRY = 10.0
"""Seconds until a model that could not be loaded is tried again."""

_ENDING = ApiError(503, "The server is shutting down.", code="request_ended")


class LoadedModels:
    """The models of a server, of which only some are loaded at once.

    A request for a loaded model begins at once. A request for another model waits until that is
    loaded. If there is no room, the least recently used model is unloaded: new requests for it
    wait, its running requests finish, and its process ends. So no model is unloaded while it
    answers, and no request waits for ever.

    Args:
        entries: The models, at least one.
        most: Maximum number of loaded models.
        idle: Seconds without a request after which a model is unloaded; infinite: never.
        most_waiting: Maximum number of requests that wait for models.
    """

    def __init__(
        self,
        entries: Sequence[ModelEntry],
        most: int,
        idle: float,
        most_waiting: int,
    ) -> None:
        self.models = {one.name: ServedModel(one) for one in entries}
        self._most = most
        self._idle = idle
        self._most_waiting = most_waiting
        self._ending = False
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def n_waiting(self) -> int:
        """Number of requests that wait for models."""
        return sum(len(one.places) for one in self.models.values())

    @property
    def n_answers(self) -> int:
        """Number of requests in progress."""
        return sum(one.n_users for one in self.models.values())

    @property
    def loaded(self) -> list[ServedModel]:
        """The models that are loaded."""
        return [one for one in self.models.values() if one.state == "loaded"]

    def preload(self) -> None:
        """Begin to load the models with `load_on_startup`, up to the maximum."""
        wanted = [one for one in self.models.values() if one.entry.load_on_startup]
        for model in wanted[: self._most]:
            self._load(model)

    def end_answers(self) -> None:
        """End all answers; their clients get the text generated so far. No model is loaded
        afterwards."""
        self._ending = True
        for model in self.models.values():
            self._refuse(model, _ENDING)
            if model.child is not None:
                model.child.end()

    async def close(self) -> None:
        """End all processes."""
        self.end_answers()
        for model in self.models.values():
            if model.child is not None:
                await model.child.stop()
        await asyncio.gather(*self._tasks)

    @asynccontextmanager
    async def using(self, model: ServedModel) -> AsyncIterator[Child]:
        """Wait until a model is loaded, and keep it loaded until this exits. If this is cancelled
        while it waits, its place is free. Raises ApiError."""
        child = await self._entered(model)
        try:
            yield child
        finally:
            self._leave(model)

    async def _entered(self, model: ServedModel) -> Child:
        if self._ending:
            raise _ENDING
        if model.state == "loaded" and not model.draining:
            return self._enter(model)
        loop = asyncio.get_running_loop()
        if model.failed is not None and loop.time() - model.failed_at < _RETRY:
            raise model.failed  # else every such request would unload another model
        if self.n_waiting >= self._most_waiting:
            raise ApiError(503, "The server is busy; try again later.", code="server_overloaded")
        place: asyncio.Future[Child] = loop.create_future()
        if not model.places:
            model.wanted_since = loop.time()
        model.places.append(place)
        self._arrange()
        try:
            return await place
        except asyncio.CancelledError:
            if place in model.places:
                model.places.remove(place)
                self._arrange()
            elif not place.cancelled() and place.exception() is None:
                self._leave(model)
            raise

    def _enter(self, model: ServedModel) -> Child:
        assert model.child is not None
        model.n_users += 1
        model.last_used = asyncio.get_running_loop().time()
        if model.timer is not None:
            model.timer.cancel()
            model.timer = None
        return model.child

    def _leave(self, model: ServedModel) -> None:
        model.n_users -= 1
        model.last_used = asyncio.get_running_loop().time()
        self._start_timer(model)
        self._arrange()

    def _start_timer(self, model: ServedModel) -> None:
        """Start the timer after which an unused model is unloaded."""
        seconds = self._idle if model.idle is None else model.idle
        if model.n_users == 0 and math.isfinite(seconds) and model.state == "loaded":
            loop = asyncio.get_running_loop()
            model.timer = loop.call_later(seconds, self._sleep, model)

    def _sleep(self, model: ServedModel) -> None:
        if model.state == "loaded" and model.n_users == 0:
            self._stop(model, "sleeping")

    def _arrange(self) -> None:
        """Load the models that waiting requests need, and unload others to make room."""
        if self._ending:
            return
        every = self.models.values()
        wanted = [one for one in every if one.places and one.state in ("unloaded", "sleeping")]
        wanted.sort(key=lambda one: one.wanted_since)
        room = self._most - sum(one.occupies for one in every)
        for model in wanted[: max(room, 0)]:
            self._load(model)
        missing = len(wanted[max(room, 0) :])
        coming = sum(one.state == "stopping" or one.draining for one in every)
        able = [one for one in every if one.state == "loaded" and not one.draining]
        able.sort(key=lambda one: (one.n_users > 0, one.last_used))
        for model in able[: max(missing - coming, 0)]:
            model.draining = True
        for model in every:
            if model.draining and not missing:  # the requests that needed its place are gone
                model.draining = False
                self._admit(model)
            elif model.draining and model.state == "loaded" and model.n_users == 0:
                self._stop(model, "unloaded")

    def _admit(self, model: ServedModel) -> None:
        """Begin all requests that wait for a loaded model."""
        while model.places:
            model.places.popleft().set_result(self._enter(model))

    def _refuse(self, model: ServedModel, error: ApiError) -> None:
        """Refuse all requests that wait for a model."""
        while model.places:
            model.places.popleft().set_exception(error)

    def _load(self, model: ServedModel) -> None:
        model.state = "loading"
        self._begin(self._loading(model))

    async def _loading(self, model: ServedModel) -> None:
        log.info("Loading %s", model.name)
        try:
            model.child = child = await Child.start(model.name, model.entry.arguments)
            if self._ending:
                child.end()
            await child.ready()
            model.cards = await _cards(child, model.name)
        except (LoadError, OSError, *GONE) as error:
            await self._give_up(model, str(error).rstrip("."))
        else:
            model.state, model.failed = "loaded", None
            child.ended.add_done_callback(lambda _: self._process_ended(model, child))
            self._admit(model)
            self._start_timer(model)
        self._arrange()

    async def _give_up(self, model: ServedModel, why: str) -> None:
        if model.child is not None:
            await model.child.stop()
        sentence = f"The model {model.name!r:.80} could not be loaded: {why}."
        model.failed = ApiError(500, sentence, code="model_not_loaded")
        model.failed_at = asyncio.get_running_loop().time()
        model.child, model.state = None, "unloaded"
        log.warning("%s", sentence)
        self._refuse(model, model.failed)

    def _process_ended(self, model: ServedModel, child: Child) -> None:
        """Handle a process that has ended by itself."""
        if model.child is child and model.state == "loaded" and not self._ending:
            log.warning("The process of %s ended with %d", model.name, child.ended.result())
            model.child, model.state, model.draining = None, "unloaded", False
            self._begin(child.stop())
            self._arrange()

    def _stop(self, model: ServedModel, after: Literal["unloaded", "sleeping"]) -> None:
        model.state = "stopping"
        self._begin(self._stopping(model, after))

    async def _stopping(self, model: ServedModel, after: Literal["unloaded", "sleeping"]) -> None:
        log.info("Unloading %s", model.name)
        assert model.child is not None
        await model.child.stop()
        model.child, model.draining, model.state = None, False, after
        self._arrange()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _cards(child: Child, name: str) -> dict[str, Any]:
    """Return a loaded model's descriptions of itself, by path."""
    asked = {"/v1/models": None, "/api/tags": None, "/api/show": encoded({"model": name})}
    return {path: json.loads(await child.ask(path, body)) for path, body in asked.items()}
