"""Requests from any thread or from asyncio, run by a thread of the session's own."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar, overload

from typing_extensions import Unpack

from specllama import _check
from specllama._core import Chunk
from specllama.errors import ArgumentError
from specllama.model.chat_template import Message
from specllama.model.core import Core
from specllama.model.loaded_model import LoadedModel
from specllama.model.template_options import TemplateOptions
from specllama.requests.handle import Handle
from specllama.requests.job import Job
from specllama.requests.load import Load
from specllama.requests.options import GenerateOptions
from specllama.requests.request import Hosted, Request
from specllama.requests.stream import Generation
from specllama.requests.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")

MOST_CHOICES = 4096
"""Most choices for one prompt: each is a request, and all are made before the first begins."""


class BackgroundRequests(LoadedModel):
    """A loaded model that takes requests from any thread, and has its own thread to run them."""

    def __init__(self, core: Core, path: str, template: TemplateOptions, *, max_queue: int) -> None:
        super().__init__(core, path, template)
        self._last: Callable[[], Generation | None] = lambda: None
        self._worker = Worker(core, max_queue)
        # Also runs when the process ends: by then the thread must have left the core.
        weakref.finalize(self, self._worker.close)

    @property
    def _free_core(self) -> Core:
        """The core, for work in the calling thread, once what was cancelled has left it."""
        self._worker.wait_for_cancelled()
        return self._core

    @overload
    def submit(self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]) -> Handle: ...
    @overload
    def submit(
        self, prompt: str | Iterable[int], *, n: int, **options: Unpack[GenerateOptions]
    ) -> list[Handle]: ...
    def submit(
        self,
        prompt: str | Iterable[int],
        *,
        n: int | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Handle | list[Handle]:
        """Have a prompt continued in the background. May be called from any thread.

        Arguments are those of `generate`, for one prompt only.

        Returns:
            A handle, at once; with n given, a list of n handles.

        Raises:
            ArgumentError: The prompt is empty, has ids that are not tokens, or does not fit the
                context together with max_tokens; or an option is wrong.
            QueueFullError: `max_queue` requests wait already. (If there is room for one request,
                all n choices are taken.)
            ClosedError: The session is closed.
        """
        handles = submitted(self, prepared(self, [prompt], n, options))
        return handles[0] if n is None else handles

    def host(
        self,
        prompt: str | Iterable[int],
        *,
        paced: bool = False,
        generated: Iterable[int] = (),
        **options: Unpack[GenerateOptions],
    ) -> Handle:
        """Have a prompt continued for a party elsewhere that drafts. It leaves its drafts by
        `Handle.offer` and reads the rounds by `Handle.next_rounds`. The session must have been
        opened with offers=True.

        Args:
            prompt: As for `submit`.
            paced: Each round but the first waits for a draft and verifies it as it is: one round
                per draft. A request that waits for more than a second while others wait for a place
                loses its own. False: a draft is used if it comes in time and is expected to pay,
                beside those of the session's own drafters.
            generated: Tokens that an earlier request with the same prompt and options, seed
                included, generated before it broke off. The generation continues after them as the
                earlier one would have; `max_tokens` counts them.
            **options: As for `submit`.

        Raises: what `submit` raises.
        """
        return submitted(self, prepared_host(self, prompt, paced, generated, options))[0]

    def astream(
        self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]
    ) -> AsyncGenerator[Chunk, None]:
        """Continue a prompt, chunk by chunk: `async for chunk in session.astream(...)`.

        Arguments and errors are those of `submit`. Leaving the loop, or cancelling the task, ends
        the request. (After a `break` it ends when the iterator is closed or collected.)
        """
        return self._achunks(lambda: Request.make(self, prompt, options))

    def _achunks(self, make: Callable[[], Request]) -> AsyncGenerator[Chunk, None]:
        """Do what `astream` does with a request, which is made in another thread."""
        jobs: list[Job] = []

        async def chunks() -> AsyncGenerator[Chunk, None]:
            jobs.extend(await self._aside(lambda: self._jobs([make()])))
            (handle,) = self._handles(jobs)
            try:
                self._submit(jobs, keep=True)
                while several := await handle.next_chunks():
                    for chunk in several:
                        yield chunk
            finally:
                self._cancel(jobs)

        iterator = chunks()
        # asyncio closes a collected iterator only when the event loop comes to it: too late for a
        # call that follows at once.
        weakref.finalize(iterator, self._cancel, jobs).atexit = False
        return iterator

    @overload
    async def agenerate(
        self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]
    ) -> Generation: ...
    @overload
    async def agenerate(
        self, prompt: str | Iterable[int], *, n: int, **options: Unpack[GenerateOptions]
    ) -> list[Generation]: ...
    async def agenerate(
        self,
        prompt: str | Iterable[int],
        *,
        n: int | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation | list[Generation]:
        """Continue a prompt without blocking the event loop. Cancelling the task ends the request.

        Args:
            prompt: As for `generate`. (For several, gather several calls.)
            n: Number of choices, as for `generate`; with it the result is a list.
            **options: See `GenerateOptions`.

        Raises: what `submit` and `Handle.result` raise.
        """
        return await self._acontinued(prompt, n, options)

    async def _acontinued(
        self, prompt: str | Iterable[int], n: int | None, options: GenerateOptions
    ) -> Generation | list[Generation]:
        """Do what `agenerate` does."""
        # In another thread: tokenizing a long prompt takes a while, and so may a JSON schema.
        jobs = await self._aside(
            lambda: self._jobs(Request.choices(self, prompt, options, _count(n)))
        )
        try:
            self._submit(jobs, keep=True)
            answers = [await handle for handle in self._handles(jobs)]
        finally:
            self._cancel(jobs)
        self._last = jobs[-1].so_far
        return answers[0] if n is None else answers

    @overload
    async def achat(
        self,
        messages: Sequence[Message],
        *,
        template_args: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation: ...
    @overload
    async def achat(
        self,
        messages: Sequence[Message],
        *,
        template_args: Mapping[str, Any] | None = None,
        n: int,
        **options: Unpack[GenerateOptions],
    ) -> list[Generation]: ...
    async def achat(
        self,
        messages: Sequence[Message],
        *,
        template_args: Mapping[str, Any] | None = None,
        n: int | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation | list[Generation]:
        """Answer the last message of a conversation without blocking the event loop. Cancelling the
        task ends the request. Arguments and errors are those of `SpecSession.chat`."""
        prompt = await self._aside(self.render_chat, messages, template_args)
        return await self._acontinued(prompt, n, options)

    def astream_chat(
        self,
        messages: Sequence[Message],
        *,
        template_args: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> AsyncGenerator[Chunk, None]:
        """Do as `achat` does, chunk by chunk: see `astream`."""
        return self._achunks(
            lambda: Request.make(self, self.render_chat(messages, template_args), options)
        )

    @overload
    async def ainfill(
        self,
        prefix: str,
        suffix: str,
        *,
        files: Mapping[str, str] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation: ...
    @overload
    async def ainfill(
        self,
        prefix: str,
        suffix: str,
        *,
        files: Mapping[str, str] | None = None,
        n: int,
        **options: Unpack[GenerateOptions],
    ) -> list[Generation]: ...
    async def ainfill(
        self,
        prefix: str,
        suffix: str,
        *,
        files: Mapping[str, str] | None = None,
        n: int | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation | list[Generation]:
        """Fill a gap in a text without blocking the event loop. Cancelling the task ends the
        request. Arguments and errors are those of `SpecSession.infill`."""
        prompt, options = await self._aside(self._infill_request, prefix, suffix, files, options)
        return await self._acontinued(prompt, n, options)

    async def _aside(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in another thread. Raises BusyError in a thread that may not wait: the
        other one would perhaps wait for the drafter that is being asked here."""
        self._worker.check_may_wait()
        return await asyncio.to_thread(call, *args, **kwargs)

    def _infill_request(
        self, prefix: str, suffix: str, files: Mapping[str, str] | None, options: GenerateOptions
    ) -> tuple[list[int], GenerateOptions]:
        """Return the prompt and the options of a generation that fills a gap."""
        if not (files is None or isinstance(files, Mapping)):
            raise ArgumentError(
                f"files must be a dict of texts by their names, not {type(files).__name__}."
            )
        infill = self.render_infill(prefix, suffix, (files or {}).items())
        referred: GenerateOptions = {"reference": infill.left_out}
        return infill.tokens, {**referred, **options}

    @property
    def load(self) -> Load:
        """The load of the session's thread: requests waiting and running, tokens, speed."""
        return self._worker.load

    def _wait_for_choices(
        self, prompts: Iterable[str | Iterable[int]], n: int | None, options: GenerateOptions
    ) -> list[list[Generation]]:
        """Return n choices (None: one) for each prompt. If one fails, or the wait is interrupted,
        all are cancelled."""
        n = _count(n)
        jobs = self._jobs(_requests(self, prompts, n, options))
        try:
            self._submit(jobs, wait=True, keep=True)
            answers = [handle.result() for handle in self._handles(jobs)]
        finally:
            self._cancel(jobs)
        self._last = jobs[-1].so_far
        return [answers[i : i + n] for i in range(0, len(answers), n)]

    def _jobs(self, requests: Iterable[Request]) -> list[Job]:
        """Return a job for each request. They are there before the first is submitted, so that they
        can be cancelled wherever Ctrl-C comes. Raises ArgumentError if one could never begin."""
        jobs = [Job(request) for request in requests]
        for job in jobs:
            job.request.check(self._core)
        return jobs

    def _submit(self, jobs: Sequence[Job], *, wait: bool = False, keep: bool = False) -> None:
        """Submit all; if one cannot be submitted, none.

        Args:
            jobs: The requests.
            wait: Wait for room in the queue.
            keep: Whether `last` is, from now on, the latest of these requests that has begun.
        """
        try:
            for job in jobs:
                self._worker.submit(job, wait=wait, beside=job is not jobs[0] and not wait)
                if keep:  # jobs, not handles: these hold the session, which would hold itself
                    self._last = partial(_latest, jobs)
        except BaseException:
            self._cancel(jobs)
            raise

    def _handles(self, jobs: Iterable[Job]) -> list[Handle]:
        return [Handle(self, self._worker, job) for job in jobs]

    def _cancel(self, jobs: Sequence[Job]) -> None:
        """Cancel all, the last first, so that no waiting job takes the place of one that ends."""
        for job in reversed(jobs):
            self._worker.cancel(job)


def prepared(
    model: BackgroundRequests,
    prompts: Iterable[str | Iterable[int]],
    n: int | None,
    options: GenerateOptions,
) -> list[Job]:
    """Return requests to continue several prompts, checked but not submitted. That may take a
    while, but changes nothing. Raises ArgumentError, and ClosedError if the session is closed.

    Args:
        model: The model that continues them.
        prompts: Texts or token ids.
        n: Choices for each prompt; None: one.
        options: Options of every request.

    Returns:
        The requests, n per prompt, in the order of the prompts.
    """
    return model._jobs(_requests(model, prompts, _count(n), options))


def prepared_host(
    model: BackgroundRequests,
    prompt: str | Iterable[int],
    paced: bool,
    generated: Iterable[int],
    options: GenerateOptions,
) -> list[Job]:
    """Return a request for `BackgroundRequests.host` as `prepared` does."""
    hosted = Hosted(_check.tokens("generated", generated), bool(paced))
    return model._jobs([Request.make(model, prompt, options, hosted=hosted)])


def submitted(model: BackgroundRequests, jobs: Sequence[Job]) -> list[Handle]:
    """Submit what `prepared` returned, all or none: if there is room for one request, all are
    taken. Never waits. Raises QueueFullError and ClosedError."""
    model._submit(jobs)
    return model._handles(jobs)


def _requests(
    model: LoadedModel, prompts: Iterable[str | Iterable[int]], n: int, options: GenerateOptions
) -> list[Request]:
    """Return n requests for each prompt, in the order of the prompts."""
    return [one for prompt in prompts for one in Request.choices(model, prompt, options, n)]


def _latest(jobs: Sequence[Job]) -> Generation | None:
    """Return what there is so far of the last job that has begun; None if none has."""
    begun = (job.so_far() for job in reversed(jobs))
    return next((one for one in begun if one is not None), None)


def _count(n: int | None) -> int:
    return 1 if n is None else _check.integer("n", n, low=1, high=MOST_CHOICES)
