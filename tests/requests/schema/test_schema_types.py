"""JSON schemas of Python types: pydantic reads the generated texts."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import re
import typing
import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import pydantic
import pytest
from grammar_draws import drawn, of_prepared
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from specllama import ArgumentError
from specllama.requests.grammar import read_schema
from typing_extensions import NotRequired, TypedDict


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: float = 0.0


class Movie(TypedDict):
    name: str
    year: NotRequired[int]


class Pair(NamedTuple):
    a: int
    b: str


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    barks: bool


class Node(BaseModel):
    value: int
    next: Node | None = None


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Exact(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int
    b: str = "x"


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Alias(BaseModel):
    a: int = Field(alias="the a")


class Kitten(Cat):
    weeks: int


class Box(BaseModel):
    """A model with nearly all kinds of fields."""

    items: dict[str, list[Point]]
    where: tuple[int, str] | None = None
    tags: set[str] = set()
    price: decimal.Decimal
    pet: Cat | Dog = Field(discriminator="kind")


TYPES: list[Any] = [
    bool, int, float, str, type(None), Any, Color, Level, Literal["a", 1, None, True],
    int | None, int | str, int | str | None,
    list, list[int], tuple[int, str], tuple[int, ...], set[int], frozenset[str],
    collections.deque[int], typing.Sequence[int],
    dict, dict[str, int], dict[Color, int], typing.Mapping[str, float],
    collections.defaultdict[str, int], collections.OrderedDict[str, int], collections.Counter[str],
    datetime.date, datetime.time, datetime.datetime, datetime.timedelta,
    uuid.UUID, pydantic.UUID1, pydantic.UUID3, pydantic.UUID4, pydantic.UUID5,
    ipaddress.IPv4Address, ipaddress.IPv6Address,
    Point, Movie, Pair, Cat, Cat | Dog, Annotated[Cat | Dog, Field(discriminator="kind")],
    Node, Tree, Exact, Open, Alias, Kitten,
    Annotated[int, Field(ge=-5, le=5)], Annotated[float, Field(gt=0, lt=1)],
    Annotated[int, Field(multiple_of=3)], Annotated[float, Field(multiple_of=0.5)],
    Annotated[str, Field(min_length=2, max_length=4)], Annotated[str, Field(pattern=r"^[a-z]+\d$")],
    Annotated[list[int], Field(min_length=1, max_length=3)],
    Annotated[dict[str, int], Field(min_length=1)],
    Annotated[dict[Color, int], Field(min_length=1)],
    Annotated[dict[Color, int], Field(max_length=1)],
    pydantic.PositiveInt, pydantic.NegativeInt, pydantic.NonNegativeInt, pydantic.NonPositiveInt,
    pydantic.PositiveFloat, pydantic.NegativeFloat, pydantic.NonNegativeFloat,
    pydantic.StrictInt, pydantic.StrictStr, pydantic.StrictBool, pydantic.AwareDatetime,
    pydantic.AnyUrl, pydantic.Base64Bytes, pydantic.RootModel[list[int]],
    pydantic.JsonValue,
]  # fmt: skip
"""Types that the schema describes completely."""


def texts(kind: Any, n: int = 20) -> list[bytes]:
    grammar = of_prepared(read_schema(kind).text)
    found = [drawn(grammar, seed) for seed in range(n)]
    return [text for text in found if text is not None]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_pydantic_reads_the_generated_text_of_types(kind: Any) -> None:
    adapter = TypeAdapter(kind)
    found = texts(kind)
    assert found
    for text in found:
        adapter.validate_json(text)


PARTS: list[Any] = [
    bytes, decimal.Decimal, pathlib.Path, re.Pattern, pydantic.ByteSize, pydantic.SecretStr,
    pydantic.HttpUrl, pydantic.PastDate, pydantic.Base64Str, dict[int, str], Box,
]  # fmt: skip


@pytest.mark.parametrize("kind", PARTS, ids=str)
def test_types_with_a_partial_schema_generate_json(kind: Any) -> None:
    found = texts(kind)
    assert found
    assert all(json.loads(text) is not None for text in found)


def test_a_type_without_a_schema_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"json_schema is the type .*, which has no schema"):
        read_schema(type("Odd", (), {}))
