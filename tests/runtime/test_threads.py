"""The number of decoding threads: as given, or else by the machine's load."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from prompts import ENDLESS, PROMPTS
from session_options import Open
from specllama import _llama

PROMPT = PROMPTS["class"]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_given_number_of_threads_is_kept(open_session: Open, n_threads: int) -> None:
    session = open_session(n_threads=n_threads)
    assert session.n_threads == n_threads
    assert session.generate(PROMPT, max_tokens=8).stats.n_threads == n_threads


def test_fewer_threads_decode_while_other_programs_use_the_processor(open_session: Open) -> None:
    session = open_session(n_threads=None)
    most = session.n_threads
    if most == 1:
        pytest.skip("this machine has one processor")
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(most)]
    try:
        deadline = time.monotonic() + 60
        while session.generate(PROMPT, max_tokens=16, **ENDLESS).stats.n_threads == most:
            assert time.monotonic() < deadline
    finally:
        for one in busy:
            one.kill()
            one.wait()
    assert session.last is not None
    assert most > session.last.stats.n_threads >= most / 2


def test_an_exact_session_computes_the_same_bits_with_any_number_of_threads(
    open_session: Open,
) -> None:
    one, three = (
        open_session(n_threads=n, exact=True, kv_type=None).generate(
            PROMPT, max_tokens=40, logprobs=3, **ENDLESS
        )
        for n in (1, 3)
    )
    assert one.tokens == three.tokens
    assert [each.logprob for each in one.logprobs] == [each.logprob for each in three.logprobs]


def test_openmp_threads_spin_briefly_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    assert _llama.brief_spinning() == {"GOMP_SPINCOUNT": "1000"}
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "1")
        assert _llama.brief_spinning() == {}
        monkeypatch.delenv(name)
