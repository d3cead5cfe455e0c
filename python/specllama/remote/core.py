"""A model elsewhere, as a session is made on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from threading import get_ident
from typing import Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from specllama import _core
from specllama._core.plan import CurvePoints, Planner
from specllama.drafter import Drafter
from specllama.errors import ArgumentError, BusyError, ClosedError, ModelError
from specllama.formats.wire import MOST_DRAFTED
from specllama.remote.gate import Gate
from specllama.remote.party import Party
from specllama.remote.proposing import Custom, DraftModel, NGrams, Proposer
from specllama.remote.stream import RemoteStream
from specllama.remote.target import Target
from specllama.remote.text import Text
from specllama.remote.trip import Trip

_N_PINGS = 3
_MOMENT = 0.05
"""Most seconds that a step waits for a round, so that other requests may begin or end."""


class RemoteCore:
    """A session like `_core.Session` whose target is on a server and whose drafters are here.

    Args:
        target: The model on the server; it is closed with the session.
        draft: What drafts besides a draft model: "ngram", a drafter, or None.
        draft_model: Loads the draft model, given the tokens of its context; None: there is none.
        n_seq: Most requests that are worked at together.
        spec_length: Most tokens drafted in a row; None: as many as pay.
        guesses: Most tokens drafted at one position, if the target takes as many.
    """

    def __init__(
        self,
        target: Target,
        draft: Literal["ngram"] | Drafter | None,
        draft_model: Callable[[int], _core.Session] | None,
        *,
        n_seq: int,
        spec_length: int | None,
        guesses: int,
    ) -> None:
        self._target = target
        self._draft = draft
        self._n_seq = n_seq
        self._spec_length = spec_length
        self._trip = Trip()
        self._about = target.about
        self._planner = Planner()
        seconds = self._about.decode_seconds
        if any(seconds):
            self._planner.cost.restore(CurvePoints(seconds=seconds))
        for _ in range(_N_PINGS):
            began = time.monotonic()
            target.ping()
            self._trip.observe(time.monotonic() - began)
        self._longest = min(MOST_DRAFTED, self._about.longest_draft)
        self._guesses = max(min(guesses, self._about.guesses), 1)
        self._draft_model = None if draft_model is None else self._opened(draft_model)
        self._active: list[RemoteStream] = []
        self._rounds: dict[RemoteStream, Future[None]] = {}  # under way, where there are several
        self._n_started = 0
        self._closed = False
        self._gate = Gate(queues=n_seq > 1)
        self._owner = 0  # the thread that has begun the last generation
        self._asking = threading.RLock()  # a drafter may end another stream
        self._pool: ThreadPoolExecutor | None = None
        self._text_of = lru_cache(maxsize=4096)(self._ask_text)

    def _opened(self, draft_model: Callable[[int], _core.Session]) -> DraftModel:
        core = draft_model(self.n_ctx)
        if f"{core.vocabulary:016x}" != self._about.vocabulary:
            what = core.model_description
            core.close()
            raise ModelError(
                f"The draft model ({what}) has another vocabulary than the target at "
                f"{self._target.url} ({self._about.description}); take one that was made with "
                "it."
            )
        return DraftModel(core, self._guesses)

    def tokenize(
        self,
        text: str,
        *,
        add_special: bool,
        parse_special: bool,
        plain: Sequence[tuple[int, int]] = (),
    ) -> NDArray[np.int32]:
        self._check_open()
        tokens = self._target.tokenize(
            text, add_special=add_special, parse_special=parse_special, plain=plain
        )
        return np.array(tokens, dtype=np.int32)

    def detokenize(self, tokens: Iterable[int], *, special: bool) -> str:
        self._check_open()
        return self._text_of(tuple(int(token) for token in tokens), special)

    def piece(self, token: int) -> bytes:
        # The first token of a text loses its leading space in some vocabularies; the second does
        # not. Servers tell texts, so bytes of half a character come as U+FFFD.
        first = self.detokenize([token], special=True)
        return self.detokenize([token, token], special=True)[len(first) :].encode()

    def _ask_text(self, tokens: tuple[int, ...], special: bool) -> str:
        return self._target.detokenize(tokens, special=special)

    def check(self, prompt: Iterable[int], options: _core.GenerateOptions) -> None:
        tokens = list(prompt)
        n = len(tokens)
        for token in tokens:
            if not 0 <= token < self.n_vocab:
                raise ArgumentError(
                    f"The prompt has token {token}, but {self._target.url} knows the tokens 0 to "
                    f"{self.n_vocab - 1}."
                )
        if n == 0:
            raise ArgumentError("The prompt is empty; give at least one token.")
        if n >= self.n_ctx:
            raise ArgumentError(
                f"The prompt has {n} tokens, which leaves no room in a context of {self.n_ctx} at "
                f"{self._target.url}; shorten it."
            )
        if options.sampling.acceptance is _core.AcceptanceRule.rejection:
            _refuse('acceptance="rejection"')
        if options.trace:
            _refuse("trace")
        if options.replayed:
            _refuse("replay")
        self._target.check(options)

    def start(self, prompt: Iterable[int], options: _core.GenerateOptions) -> RemoteStream:
        self._check_open()
        tokens = [int(token) for token in prompt]
        self.check(tokens, options)
        with self._working():
            if self._n_seq == 1:
                self._end_for_another()
            elif len(self._active) >= self._n_seq:
                raise BusyError(
                    f"All {self._n_seq} sequences of the session are in use; wait until one is "
                    "free, or raise n_seq."
                )
            stream = self._begun(tokens, options)
            self._active.append(stream)
            self._owner = get_ident()
            return stream

    def _end_for_another(self) -> None:
        if self._active and self._owner != get_ident():
            raise BusyError(
                "The session has an unfinished generation in another thread; use one session per "
                "thread, or finish or cancel that generation."
            )
        for other in list(self._active):
            other.end(
                ClosedError("This stream was ended when the session began another generation.")
            )

    def _begun(self, tokens: list[int], options: _core.GenerateOptions) -> RemoteStream:
        party = Party(
            text=Text(tokens, options, self._about),
            url=self._target.url,
            planner=self._planner,
            trip=self._trip,
            longest=self._longest,
            most_nodes=self.most_nodes,
            guesses=self._guesses,
            proposer=self._proposer(tokens, options),
            draft_model=self._draft_model,
            spec_length=self._spec_length,
        )
        runner = self._target.runner(party)
        return RemoteStream(party, runner, self.step, self._retire_soon, self._leave)

    def _proposer(self, tokens: list[int], options: _core.GenerateOptions) -> Proposer | None:
        if self._draft is None:
            return None
        if self._draft == "ngram":
            return NGrams(tokens, options.reference, self._guesses)
        self._n_started += 1
        return Custom(
            self._draft, self._asking, self._n_started, tokens, self.n_vocab, self._guesses
        )

    def _leave(self, stream: RemoteStream) -> None:
        if stream in self._active:
            self._active.remove(stream)

    def step(self) -> bool:
        with self._working():
            self._check_open()
            active = list(self._active)
            if self._n_seq == 1:
                for stream in active:
                    stream.round()
            elif active:
                self._step_several(active)
            return bool(active)

    def _step_several(self, active: list[RemoteStream]) -> None:
        """Wait for a moment until one of the streams has done a round.

        The rounds of the others go on in their threads, so a stream that waits for a place at the
        server, or for a long prompt, delays no other.
        """
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._n_seq, "specllama-remote")
        for stream in active:
            if stream not in self._rounds:
                self._rounds[stream] = self._pool.submit(self._round, stream)
        done, _ = wait(self._rounds.values(), _MOMENT, FIRST_COMPLETED)
        self._reap()
        for future in done:
            future.result()  # raises interrupts, which do not belong to the stream

    def _round(self, stream: RemoteStream) -> None:
        with self._gate.inside():
            stream.round()

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Let only this thread work, and end abandoned streams before and after. Raises
        BusyError."""
        with self._gate.working():
            self._retire()
            yield
            self._retire()

    def _reap(self) -> None:
        self._rounds = {
            stream: future for stream, future in self._rounds.items() if not future.done()
        }

    def _retire(self) -> None:
        self._reap()
        for stream in list(self._active):
            if stream.abandoned and stream not in self._rounds:
                stream.end()

    def _retire_soon(self) -> None:
        # If another thread is at work, that one retires them, and the next call waits for it.
        with self._gate.brief() as entered:
            if entered:
                self._retire()
            else:
                self._gate.await_present()

    def beam_search(self, prompt: Iterable[int], options: _core.BeamOptions) -> NoReturn:
        _refuse("n_beams")

    def save(self) -> NoReturn:
        _refuse("save_state")

    def load(self, key: str, tokens: Iterable[int], memory: NDArray[np.uint8]) -> NoReturn:
        _refuse("load_state")

    def hang_up(self) -> None:
        self._target.hang_up()

    def close(self) -> None:
        if self._closed:
            return
        with self._working():
            self._closed = True
            if self._rounds:  # the pool would wait for their ends otherwise
                self.hang_up()
            if self._pool is not None:
                self._pool.shutdown()
            self._rounds.clear()
            for stream in list(self._active):
                stream.end(ClosedError("The session is closed; open a new one."))
            if self._draft_model is not None:
                self._draft_model.close()
            self._target.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("The session is closed; open a new one.")

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def entered(self) -> bool:
        return self._gate.entered

    @property
    def n_ctx(self) -> int:
        return self._about.n_ctx

    @property
    def n_seq(self) -> int:
        return self._n_seq

    @property
    def n_vocab(self) -> int:
        return self._about.n_vocab

    @property
    def bos(self) -> int:
        return self._about.bos

    @property
    def eos(self) -> int:
        return self._about.eos

    @property
    def fim(self) -> tuple[int, int, int, int, int]:
        prefix, suffix, middle, repository, file = self._about.fim
        return prefix, suffix, middle, repository, file

    @property
    def chat_template(self) -> str | None:
        return self._about.chat_template

    @property
    def vocabulary(self) -> int:
        return int(self._about.vocabulary, 16)

    def decode_seconds(self) -> list[float]:
        return list(self._planner.cost.points().seconds)

    @property
    def longest_draft(self) -> int:
        return self._longest

    @property
    def most_guesses(self) -> int:
        return self._guesses

    @property
    def most_nodes(self) -> int:
        most = max(min(MOST_DRAFTED, self._about.most_nodes), self._longest)
        return most if self._spec_length is None else min(most, self._spec_length * self._guesses)

    @property
    def n_threads(self) -> int:
        return self._about.n_threads

    @property
    def model_description(self) -> str:
        return f"{self._about.description} at {self._target.url}"

    @property
    def cpu_kernels(self) -> str:
        return self._about.kernels


def _refuse(what: str) -> NoReturn:
    raise ArgumentError(f"{what} cannot be had of a target elsewhere; leave it out.")
