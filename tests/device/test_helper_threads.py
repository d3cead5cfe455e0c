"""The helper threads of decodes. OpenMP counts those of the whole process: if a thread that stopped
decoding leaves some, all others wait by sleeping."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, threading, time
from specllama import SpecSession
from specllama.model.loaded_model import backend_of

PROMPT = "def parse(text):"
OPTIONS = dict(n_threads=2, n_ctx=256, n_gpu_layers=0)

def threads():
    # A joined thread is listed for a moment longer: wait until the number does not change.
    seen, n_same = 0, 0
    while n_same < 10:
        time.sleep(0.03)
        now = len(os.listdir("/proc/self/task"))
        seen, n_same = now, n_same + 1 if now == seen else 0
    return seen

def elsewhere(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

def plain():
    session.generate(PROMPT, max_tokens=4)

before = threads()
session = SpecSession(draft=None, **OPTIONS)
plain()
if threads() == before:
    sys.exit("llama.cpp does without OpenMP here")
{case}
"""


def _run(case: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(case=case)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    if "without OpenMP" in result.stderr:
        pytest.skip(result.stderr.strip())
    assert result.returncode == 0, result.stderr
    return result.stdout


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")


def test_one_thread_keeps_its_helper_thread() -> None:
    assert _run("for _ in range(3): plain(); print(threads() - before)").split() == ["1"] * 3


def test_closing_a_session_ends_its_helper_threads() -> None:
    assert _run("session.close(); print(threads() - before)") == "0\n"


def test_dropping_an_unclosed_session_ends_its_helper_threads() -> None:
    assert _run("del session; print(threads() - before)") == "0\n"


def test_calibration_leaves_no_helper_thread() -> None:
    case = """
session.close()
another = SpecSession(draft='ngram', **OPTIONS)
assert backend_of(another).decode_seconds()[0] > 0
print(threads() - before)
"""
    assert _run(case) == "0\n"


def test_threads_that_decode_in_turns_leave_no_helper_threads() -> None:
    case = """
many = SpecSession(draft=None, n_seq=2, **OPTIONS)
many.generate([PROMPT], max_tokens=4)  # in its own thread, which continues
plain()
many.generate([PROMPT], max_tokens=4)
print(threads() - before)
"""
    assert _run(case) == "1\n"


def test_a_beam_search_leaves_no_helper_thread() -> None:
    case = """
elsewhere(plain)
print(threads() - before)
session.beam_search(PROMPT, max_tokens=4, n_beams=2)
print(threads() - before)
"""
    assert _run(case) == "1\n0\n"


def test_an_abandoned_stream_leaves_no_helper_thread() -> None:
    case = """
elsewhere(plain)
stream = session.stream(PROMPT, max_tokens=8)
next(iter(stream))
print(threads() - before)
stream.close()
print(threads() - before)
"""
    assert _run(case) == "1\n0\n"
