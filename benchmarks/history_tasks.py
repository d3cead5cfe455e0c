"""Requests of `bench_history.py`: series that resemble each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agent import FILES

Ask = Callable[[list[dict[str, str]], dict[str, Any], str], str]
"""Sends a conversation with further request fields, and returns the answer. The string names the
part of the series."""

_DATA = Path(__file__).parents[1] / "tests" / "data"

_NAMES = ("Ana Sousa", "Ben Okafor", "Carla Rossi", "David Kim", "Emma Lind", "Farid Haddad")
_GOODS = ("oak table", "desk lamp", "office chair", "bookshelf")
_CITIES = ("Lisbon", "Leeds", "Turin", "Busan", "Malmo", "Lyon", "Graz", "Porto")

SCHEMA = {
    "type": "object",
    "properties": {
        "order_number": {"type": "string"},
        "customer": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "city": {"type": "string"}},
            "required": ["name", "city"],
        },
        "article": {"type": "string"},
        "quantity": {"type": "integer"},
        "complaint": {"type": "string"},
        "wishes_refund": {"type": "boolean"},
    },
    "required": [
        "order_number", "customer", "article", "quantity", "complaint", "wishes_refund",
    ],
}  # fmt: skip

_COMPLAINTS = (
    "arrived with a deep scratch on its left side",
    "is still not here after three weeks",
    "came in the wrong colour",
    "is missing its screws and the manual",
)


def extractions() -> Iterator[tuple[list[dict[str, str]], dict[str, Any]]]:
    """Yield 24 letters from which the same fields are extracted as JSON."""
    system = "Extract the order from the customer's letter as JSON."
    form = {"type": "json_schema", "json_schema": {"name": "order", "schema": SCHEMA}}
    for i in range(24):
        refund = "I would like my money back." if i % 3 else "Please send a new one."
        letter = (
            f"Hello, my name is {_NAMES[i % 6]} and I live in {_CITIES[(3 * i) % 8]}. The "
            f"{_GOODS[(i // 2) % 4]} that I ordered ({1 + i % 3} of them, order "
            f"{'ABCDEF'[i % 6]}-{4711 + 37 * i}) {_COMPLAINTS[(i + i // 4) % 4]}. {refund}"
        )
        messages = [{"role": "system", "content": system}, {"role": "user", "content": letter}]
        yield messages, {"response_format": form}


_QUESTIONS = (
    ("What does the keyword yield do in Python?", "What is yield for in Python?",
     "Can you explain Python's yield to me?", "In Python, what is the yield keyword used for?"),
    ("How do I read a CSV file in Python?", "How can a CSV file be read with Python?",
     "I need to read a CSV file in Python. How?", "Show me how to load a CSV file in Python."),
    ("Write a Python function that checks whether a number is prime.",
     "I need a prime test for integers in Python.",
     "Give me a Python function is_prime(n).", "How do I check for primes in Python? Write it."),
    ("What is the difference between a list and a tuple in Python?",
     "Lists or tuples in Python: how do they differ?",
     "How does a tuple differ from a list in Python?", "Compare Python's lists and tuples."),
    ("Write a bash script that deletes all .tmp files older than 7 days.",
     "How do I delete .tmp files that are more than a week old, in bash?",
     "I want a bash script: remove *.tmp files older than seven days.",
     "Delete old .tmp files (7 days and more) with a bash script, please."),
    ("How do I undo the last commit in git?", "How can I take back my last git commit?",
     "I made a wrong commit in git. How do I undo it?", "Undo the latest git commit: how?"),
)  # fmt: skip


def questions() -> Iterator[tuple[list[dict[str, str]], dict[str, Any]]]:
    """Yield six questions in four wordings each: first all in the first wording, and so on."""
    for wording in range(4):
        for one in _QUESTIONS:
            yield [{"role": "user", "content": one[wording]}], {}


_PRICES, _CART, _TESTS = FILES
_ORDERS: tuple[tuple[str, str], ...] = (
    (_PRICES, "Read this file and say in two sentences what it does."),
    (_PRICES, "Rename gross_price to with_tax. Write the whole file."),
    (_CART, "Use with_tax in place of gross_price. Write the whole file."),
    (_TESTS, "Run these tests in your head: does each of them pass? Say why."),
    (_PRICES, "Add type hints to all functions. Write the whole file."),
    (_CART, "Add type hints to all methods. Write the whole file."),
    (_CART, "Add a method count that returns how many goods are in the cart. Write the whole "
            "file."),
    (_TESTS, "Add a test of Cart.remove. Write the whole file."),
    (_TESTS, "Add a test of Cart.count. Write the whole file."),
    (_PRICES, "Which functions of this file raise an error, and when?"),
)  # fmt: skip


def agent(ask: Ask) -> None:
    """Take twenty turns in one repository: ten orders in a conversation, then the same orders in a
    new conversation, as after a restart. Each turn contains its file."""
    for part, wording in (
        ("first time", "{order}"), ("again", "Please go on with this file. {order}"),
    ):  # fmt: skip
        messages = [
            {"role": "system", "content": "You are a programmer who works on a small repository."}
        ]
        for path, order in _ORDERS:
            text = f"{path}:\n```python\n{FILES[path]}```\n{wording.format(order=order)}"
            messages.append({"role": "user", "content": text})
            messages.append({"role": "assistant", "content": ask(messages, {}, part)})


def extract(ask: Ask) -> None:
    """Extract from 24 letters with one schema."""
    for i, (messages, fields) in enumerate(extractions()):
        ask(messages, fields, "first 4" if i < 4 else "others")


def rephrase(ask: Ask) -> None:
    """Ask questions, then the same questions in other words."""
    for i, (messages, fields) in enumerate(questions()):
        ask(messages, fields, "first time" if i < len(_QUESTIONS) else "again")


def subjects(ask: Ask) -> None:
    """Ask about six different subjects, with four conversations each from
    tests/data/questions.jsonl. The session changes its subject five times."""
    lines = map(json.loads, (_DATA / "questions.jsonl").read_text().splitlines())
    asked: dict[str, list[Any]] = {}
    for one in lines:
        asked.setdefault(one["kind"], []).append(one["messages"])
    for kind in ("story", "sql", "email", "config", "reason", "log"):
        for messages in asked[kind][:4]:
            ask(messages, {}, kind)


TASKS: dict[str, Callable[[Ask], None]] = {
    "agent": agent,
    "extract": extract,
    "rephrase": rephrase,
    "subjects": subjects,
}
