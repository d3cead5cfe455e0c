"""JSON schemas: how often something comes, and how a text looks."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from schema_values import held, values
from scripted_model import write_scripted_model
from specllama import SpecSession
from specllama.requests.schema.repeated import repeated

Open = Callable[..., SpecSession]


@pytest.fixture
def session(open_session: Open) -> SpecSession:
    return open_session(draft=None)


def numbers_of(text: str, rules: dict[str, str]) -> set[int]:
    """How many of the rule "x" a part of a grammar may be."""
    numbers = {0}
    for name, low, comma, high in re.findall(r"(\S+?)\{(\d+)(,?)(\d*)\}", text):
        (size,) = {1} if name == "x" else numbers_of(rules[name], rules)
        times = range(int(low), int(high if comma else low) + 1)
        numbers = {n + size * k for n in numbers for k in times}
    return numbers


@pytest.mark.parametrize("low", [0, 1, 2, 64, 65, 100, 1000])
@pytest.mark.parametrize("more", [0, 1, 63, 64, 65, 66, 80, 99, 100, 101, 1000, 4095])
def test_repetitions(low: int, more: int) -> None:
    rules: dict[str, str] = {}

    def block(part: str) -> str:
        name = f"block-{len(rules)}"
        rules[name] = part
        return name

    text = repeated("x", low, low + more, block)
    assert numbers_of(text, rules) == set(range(low, low + more + 1))
    bounds = re.findall(r"\{(?:\d+,)?(\d+)\}", " ".join([text, *rules.values()]))
    assert sum(map(int, bounds)) <= 4 * 65 + 8 * (low + more) ** 0.5


@pytest.mark.parametrize(
    ("schema", "low", "high"),
    [
        ({"type": "string", "maxLength": 10_000}, 0, 10_000),
        ({"type": "string", "minLength": 70, "maxLength": 75}, 70, 75),
        ({"type": "string", "minLength": 2, "maxLength": 66}, 2, 66),
        ({"type": "array", "items": {"enum": [0]}, "maxItems": 3000}, 0, 3000),
        ({"type": "array", "items": {"enum": [0]}, "minItems": 70}, 70, 10**9),
        ({"type": "array", "items": {"enum": [0]}, "minItems": 66, "maxItems": 67}, 66, 67),
    ],
)
def test_long_bounds(session: SpecSession, schema: Any, low: int, high: int) -> None:
    assert all(low <= len(found["a"]) <= high for found in values(session, held(schema)))


@pytest.mark.parametrize(
    ("pieces", "bounds", "may_come"),
    [
        (['"\\ud8', "3d", '"'], {}, False),
        (['"\\ud8', "3d\\n", '"'], {}, False),
        (['"\\ud8', "3d\\u", '0041"'], {}, False),
        (['"\\uDE', "00", '"'], {}, False),
        (['"\\ud8', "3d\\u", 'DE00"'], {}, True),
        (['"\\ud8', "3d\\u", 'DE00"'], {"maxLength": 1}, True),
        (['"\\ud8', "3d\\u", 'DE00a"'], {"maxLength": 1}, False),
        (['"\\ud7', "ff\\u", 'E000"'], {"maxLength": 2}, True),
        (['"\\u0', "0e", '9"'], {"minLength": 1}, True),
    ],
)
def test_escapes_of_characters(
    tmp_path: Path, open_session: Open, pieces: list[Any], bounds: dict[str, int], may_come: bool
) -> None:
    """A character may be a pair of escapes; half a pair is none."""
    write_scripted_model(tmp_path / "escapes.gguf", pieces, any_text=True)
    session = open_session(tmp_path / "escapes.gguf", draft=None)
    schema = {"type": "string", **bounds}
    said = session.generate([1], json_schema=schema, max_tokens=len(pieces)).text
    assert (said == "".join(pieces)) is may_come


def is_a_moment(text: str) -> bool:
    """Of any year, month and day that two digits can name, which a grammar does not count."""
    return (
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", text) is not None
    )


@pytest.mark.parametrize(
    ("form", "holds"),
    [
        ("date", lambda text: is_a_moment(f"{text}T00:00:00Z")),
        ("time", lambda text: is_a_moment(f"2000-01-01T{text}")),
        ("date-time", is_a_moment),
        ("uuid", lambda text: str(uuid.UUID(text)) == text.lower()),
        ("uuid4", lambda text: str(uuid.UUID(text)) == text.lower()),
        ("email", lambda text: isinstance(text, str)),  # which is left to the model
    ],
)
def test_formats(session: SpecSession, form: str, holds: Callable[[str], bool]) -> None:
    for found in values(session, held({"type": "string", "format": form, "maxLength": 40})):
        assert holds(found["a"]), found
