"""Requests from any thread or from asyncio, run by the session's worker thread."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from typing_extensions import Unpack

from specllama import _check, _core
from specllama.errors import ArgumentError
from specllama.model.loaded_model import LoadedModel
from specllama.model.template_options import TemplateOptions
from specllama.requests.handle import Handle
from specllama.requests.options import GenerateOptions
from specllama.requests.queue_load import QueueLoad
from specllama.requests.queued_request import QueuedRequest
from specllama.requests.request import Request, Verification
from specllama.requests.stream import Generation
from specllama.requests.worker import Worker

MOST_CHOICES = 4096
"""Most choices for one prompt: each is a request, and all are made before the first begins."""


class BackgroundRequests(LoadedModel):
    """A loaded model that accepts requests from any thread, and runs them in a thread of its
    own."""

    def __init__(
        self, backend: _core.Session, path: str, template: TemplateOptions, *, max_queue: int
    ) -> None:
        super().__init__(backend, path, template)
        self._last: Callable[[], Generation | None] = lambda: None
        self._worker = Worker(backend, max_queue)
        # Also runs when the process ends: the thread must have left the core by then.
        weakref.finalize(self, self._worker.close)

    @property
    def _free_backend(self) -> _core.Session:
        """The backend, for work in the calling thread, after cancelled requests have left it."""
        self._worker.wait_for_cancelled()
        return self._backend

    def submit(
        self, prompt: str | Iterable[int], *, n: int = 1, **options: Unpack[GenerateOptions]
    ) -> Handle:
        """Queue a request to continue a prompt in the background. May be called from any thread.
        Arguments are those of `generate`, for one prompt.

        Returns:
            The handle of the first choice, at once. Its `choices` has the handles of all n.

        Raises:
            ArgumentError: The prompt is empty, has ids that are not tokens, or does not fit the
                context together with max_tokens; or an option is wrong.
            QueueFullError: `max_queue` requests are already waiting. (If there is room for one
                request, all n choices are queued.)
            ClosedError: The session is closed.
        """
        return Handle.of_choices(
            submitted(self, prepared(self, [prompt], n, GenerateOptions(**options)))
        )

    def submit_infill(
        self,
        prefix: str,
        suffix: str,
        *,
        files: Mapping[str, str] | None = None,
        n: int = 1,
        **options: Unpack[GenerateOptions],
    ) -> Handle:
        """Queue a request to fill a gap in a text. Arguments are those of `SpecSession.infill`; for
        the rest see `submit`."""
        prompt, options = self._infill_request(prefix, suffix, files, GenerateOptions(**options))
        return self.submit(prompt, n=n, **options)

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

    def _wait_for_all(
        self, prompts: Iterable[str | Iterable[int]], n: int, options: GenerateOptions
    ) -> list[Generation]:
        """Return a result with n choices for each prompt. If one fails, or the wait is interrupted,
        all are cancelled."""
        jobs = prepared(self, prompts, n, options)
        try:
            self._submit(jobs, wait=True, keep=True)
            answers = [handle.result() for handle in self._handles(jobs)]
        finally:
            self._cancel(jobs)
        self._last = jobs[-1].so_far
        return [Generation.of_choices(answers[i : i + n]) for i in range(0, len(answers), n)]

    def _jobs(self, requests: Iterable[Request]) -> list[QueuedRequest]:
        """Return a job for each request. All are made before the first is submitted, so that a
        Ctrl-C at any moment can cancel them. Raises ArgumentError if one could never begin."""
        jobs = [QueuedRequest(request) for request in requests]
        for job in jobs:
            job.request.check(self._backend)
        return jobs

    def _submit(
        self,
        jobs: Sequence[QueuedRequest],
        *,
        wait: bool = False,
        keep: bool = False,
        over_limit: bool = False,
    ) -> None:
        """Submit all requests, or none if one cannot be submitted.

        Args:
            jobs: The requests.
            wait: Wait for room in the queue.
            over_limit: Accept them even if there is no room, because they belong to a request that
                was accepted before.
            keep: Let `last` return the latest of these requests that has begun.
        """
        try:
            for job in jobs:
                self._worker.submit(
                    job, wait=wait, over_limit=over_limit or (job is not jobs[0] and not wait)
                )
                if keep:  # jobs, not handles: handles reference the session (a reference cycle)
                    self._last = partial(_latest, jobs)
        except BaseException:
            self._cancel(jobs)
            raise

    def _handles(self, jobs: Iterable[QueuedRequest]) -> list[Handle]:
        return [Handle(self, self._worker, job) for job in jobs]

    def _cancel(self, jobs: Sequence[QueuedRequest]) -> None:
        """Cancel all, the last first, so that no waiting job starts when another one ends."""
        for job in reversed(jobs):
            self._worker.cancel(job)


def prepared(
    model: BackgroundRequests,
    prompts: Iterable[str | Iterable[int]],
    n: int,
    options: GenerateOptions,
    memory_owner: int = 0,
) -> list[QueuedRequest]:
    """Return requests to continue several prompts, checked but not submitted. This may take a
    while, but changes nothing. Raises ArgumentError, and ClosedError if the session is closed.

    Args:
        model: The model that continues them.
        prompts: Texts or token ids.
        n: Choices for each prompt.
        options: Options of every request.
        memory_owner: The owner of the requests, for drafts from `memory`.

    Returns:
        The requests, n per prompt, in the order of the prompts.
    """
    n = _check.integer("n", n, low=1, high=MOST_CHOICES)
    return model._jobs(
        replace(one, memory_owner=memory_owner)
        for prompt in prompts
        for one in Request.choices(model, prompt, options, n)
    )


def verification(
    model: BackgroundRequests,
    prompt: Iterable[int],
    generated: Iterable[int],
    draft: _core.RequestDraft,
    options: GenerateOptions,
) -> list[QueuedRequest]:
    """Return a request, as `prepared` does, that verifies a draft made elsewhere in one round.

    Args:
        model: The model, opened with verifies=True.
        prompt: Token ids.
        generated: Tokens generated by earlier rounds with the same prompt, options and seed;
            `max_tokens` counts them.
        draft: The tokens to verify.
        options: Options of the generation.
    """
    request = Request.make(model, prompt, options)
    one = Verification(_check.tokens("generated", generated), draft)
    return model._jobs([replace(request, verification=one)])


def submitted(
    model: BackgroundRequests, jobs: Sequence[QueuedRequest], *, over_limit: bool = False
) -> list[Handle]:
    """Submit the requests that `prepared` returned, all or none: if there is room for one, all are
    queued; with over_limit, even if there is no room. Never waits. Raises QueueFullError and
    ClosedError."""
    model._submit(jobs, over_limit=over_limit)
    return model._handles(jobs)


def queue_load(model: BackgroundRequests) -> QueueLoad:
    """Return how busy the session's thread is. Never waits."""
    return model._worker.load


def _latest(jobs: Sequence[QueuedRequest]) -> Generation | None:
    """Return the result so far of the last job that has begun; None if none has."""
    begun = (job.so_far() for job in reversed(jobs))
    return next((one for one in begun if one is not None), None)
