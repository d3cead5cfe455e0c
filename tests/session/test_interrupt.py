"""After Ctrl-C at any moment, the session works."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from folders import SUPPORT
from processes import run_script
from specllama._interrupt import Interrupt

SCRIPT = f"""
import faulthandler, sys
sys.path.insert(0, {str(SUPPORT)!r})
from interrupting import interrupted
from specllama import SpecSession
from specllama.requests.worker import Worker

faulthandler.dump_traceback_later(50, exit=True)
session = SpecSession(draft=None, n_threads=1, n_gpu_layers=0, n_ctx=64, n_seq=2, max_queue=1)

def renewed():
    session._worker.close()
    session._worker = Worker(session._opened, 64)
    return session._worker
"""

CALLS = {
    "generate": "session.generate(['x', 'y', 'z', 'w'], max_tokens=1)",  # waits for space
    "read": "list(session.submit('x', max_tokens=2))",
    "wait": "session.submit('x', max_tokens=2).result()",
    "cancel": "[one.cancel() for one in session.submit('x', n=3, max_tokens=30).choices]",
    "call back": "session.submit('x', max_tokens=2).add_done_callback(print)",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_session_works_after_a_call_is_interrupted_anywhere(call: str) -> None:
    script = f"""
session.generate(["x"], max_tokens=1)
n = 0
while interrupted(lambda: {call}, n):
    n += 1
    (one,) = session.generate(["x"], max_tokens=1)
    assert len(one.tokens) == 1
assert n > 50
print("works", file=sys.stderr)
"""
    status, _, said = run_script(SCRIPT + script)
    assert (status, said) == (0, "works\n")


def test_a_session_works_after_its_first_request_is_interrupted_anywhere() -> None:
    """It starts the session's thread; closing the session waits for this thread."""
    script = """
n = 0
while True:
    worker = renewed()
    came = interrupted(lambda: session.submit("x", max_tokens=1), n)
    assert len(session.submit("x", max_tokens=1).result(20).tokens) == 1
    worker.close()
    assert not worker._thread.is_alive()
    if not came:
        break
    n += 1
assert n > 50
print("works")
"""
    assert run_script(SCRIPT + script)[:2] == (0, "works\n")


def test_a_session_can_be_closed_after_an_interrupted_close() -> None:
    script = """
n = 0
while True:
    worker = renewed()
    handles = session.submit("x", n=3, max_tokens=20).choices
    came = interrupted(worker.close, n)
    worker.close()
    assert all(one.done() for one in handles)
    if not came:
        break
    n += 1
assert n > 10
print("works")
"""
    assert run_script(SCRIPT + script)[:2] == (0, "works\n")


@pytest.mark.parametrize("before", [signal.SIG_IGN, signal.SIG_DFL, signal.default_int_handler])
def test_the_previous_signal_handler_is_restored(before: Any) -> None:
    """If Ctrl-C was ignored, it stays ignored throughout."""
    ends: list[bool] = []
    ours = signal.signal(signal.SIGINT, before)
    try:
        with Interrupt(lambda: ends.append(True), patience=60) as interrupt:
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, ours)
    is_heard = before is not signal.SIG_IGN
    assert (interrupt.came, len(ends)) == (is_heard, is_heard)
