"""Errors of grammars that cannot be parsed; other threads keep their output."""

from __future__ import annotations

import subprocess
import sys

import pytest
from session_options import Open
from specllama import ArgumentError

WRITES_BESIDE = """
import os, sys, threading
from specllama import SpecSession

with SpecSession() as session:
    session.generate("x", max_tokens=1)
    done = threading.Event()
    lines = []

    def write():
        while not done.is_set():
            lines.append(b"line %d\\n" % len(lines))
            os.write(2, lines[-1])

    thread = threading.Thread(target=write)
    thread.start()
    names = {f"k{i}": {"type": "string", "maxLength": 20} for i in range(60)}
    schema = {"type": "object", "properties": names}
    grammar = 'root ::= "\\u00e9" [^\\]\\x41-z]{2,9} other\\nother ::= ("a" | . )* # end'
    for given in ({"grammar": grammar}, {"json_schema": schema}):
        for _ in range(10):
            session.generate("x", max_tokens=1, **given)
    done.set()
    thread.join()
    print(len(lines))
"""


def test_stderr_of_other_threads_is_kept_while_a_grammar_is_parsed() -> None:
    program = [sys.executable, "-c", WRITES_BESIDE]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=True)
    found = done.stderr.splitlines()
    assert found == [f"line {i}" for i in range(int(done.stdout))]
    assert found


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ('root ::= "a', "a character is missing at its end"),
        ('root = "a"', "::= is missing before '= \"a\"'"),
        ('root ::= "\\q"', r"a character is missing before '\\\\q\"'"),
        ('root ::= "\\x4"', r"a character is missing before '\\\\x4\"'"),
        ('root ::= ("a"', r"\) is missing at its end"),
        ('root ::= "a" ) "b"', r"the end of the line is missing before '\) \"b\"'"),
        ('root ::= "a"{x}', r"{n}, {n,} or {n,m} is missing before '{x}'"),
        ("::= x", "a name is missing before '::= x'"),
    ],
)
def test_the_error_names_the_fault_in_a_grammar(
    open_session: Open, grammar: str, message: str
) -> None:
    with pytest.raises(ArgumentError, match="^The grammar cannot be read: " + message):
        open_session().generate("x", grammar=grammar)
