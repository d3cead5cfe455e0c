"""json: a list of records is continued, after a schema and the first records."""

from __future__ import annotations

import ast
import builtins
import calendar
import datetime
import ipaddress
import json
import random
import unicodedata
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

from sources import STDLIB
from specllama.workloads import Replay

Records = list[dict[str, Any]]

SHOWN = 3
"""Number of records in the prompt."""


def http_status() -> Records:
    return [
        {"code": s.value, "name": s.name, "phrase": s.phrase, "description": s.description}
        for s in list(HTTPStatus)[12:23]
    ]


def characters() -> Records:
    return [
        {
            "codepoint": f"U+{code:04X}",
            "character": chr(code),
            "name": unicodedata.name(chr(code)),
            "category": unicodedata.category(chr(code)),
            "decomposition": unicodedata.decomposition(chr(code)).split(),
        }
        for code in range(0xC0, 0xCB)
    ]


def functions() -> Records:
    tree = ast.parse((STDLIB / "shutil.py").read_text(encoding="utf-8"))
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [
        {
            "name": node.name,
            "line": node.lineno,
            "public": not node.name.startswith("_"),
            "parameters": [argument.arg for argument in node.args.args + node.args.kwonlyargs],
            "summary": (ast.get_docstring(node) or "").split("\n")[0],
        }
        for node in defined[5:15]
    ]


def dates() -> Records:
    first = datetime.date(2024, 2, 20)
    days = [first + datetime.timedelta(days=9 * i) for i in range(12)]
    return [
        {
            "date": day.isoformat(),
            "weekday": calendar.day_name[day.weekday()],
            "iso_week": day.isocalendar()[1],
            "day_of_year": day.timetuple().tm_yday,
            "days_in_month": calendar.monthrange(day.year, day.month)[1],
        }
        for day in days
    ]


def networks() -> Records:
    blocks = list(ipaddress.IPv4Network("172.16.0.0/12").subnets(prefixlen_diff=7))[3:60:5]
    return [
        {
            "network": str(block),
            "netmask": str(block.netmask),
            "first_host": str(block[1]),
            "last_host": str(block[-2]),
            "hosts": block.num_addresses - 2,
        }
        for block in blocks
    ]


def exceptions() -> Records:
    found = [
        value
        for _, value in sorted(vars(builtins).items())
        if isinstance(value, type) and issubclass(value, Exception)
    ]
    return [
        {
            "exception": each.__name__,
            "base": each.__bases__[0].__name__,
            "is_warning": issubclass(each, Warning),
            "is_os_error": issubclass(each, OSError),
            "summary": (each.__doc__ or "").split("\n")[0],
        }
        for each in found[4:15]
    ]


def orders() -> Records:
    draw = random.Random(3)
    goods = {"lamp": 39.9, "chair": 84.5, "desk": 249.0, "shelf": 119.0, "rug": 64.25, "mug": 7.8}
    names = ["Iris Holm", "Jonas Weber", "Aiko Mori", "Lena Duarte", "Omar Haddad", "Tess Byrne"]
    records = []
    for i in range(9):
        picked = draw.sample(sorted(goods), draw.randint(1, 3))
        items = [(sku, draw.randint(1, 4), goods[sku]) for sku in picked]
        records.append(
            {
                "id": 10417 + 13 * i,
                "customer": draw.choice(names),
                "items": [
                    {"sku": sku, "quantity": quantity, "price": price}
                    for sku, quantity, price in items
                ],
                "total": round(sum(quantity * price for _, quantity, price in items), 2),
                "paid": draw.random() < 0.7,
            }
        )
    return records


def events() -> Records:
    draw = random.Random(5)
    texts = {
        "info": ["request served", "cache warmed", "user signed in", "job finished"],
        "warning": ["slow query", "retrying upload", "disk nearly full"],
        "error": ["connection reset by peer", "payment declined", "worker exited"],
    }
    time = datetime.datetime(2024, 5, 6, 7, 30)
    records = []
    for _ in range(12):
        time += datetime.timedelta(seconds=draw.randint(1, 900))
        level = draw.choice(["info", "info", "info", "warning", "error"])
        records.append(
            {
                "time": time.isoformat(),
                "level": level,
                "service": draw.choice(["gateway", "billing", "search", "mailer"]),
                "message": draw.choice(texts[level]),
                "duration_ms": round(draw.expovariate(1 / 180), 1),
            }
        )
    return records


# Whether each record is on one line; otherwise each value is.
LISTS: list[tuple[Callable[[], Records], bool]] = [
    (http_status, False),
    (characters, True),
    (functions, False),
    (dates, True),
    (networks, True),
    (exceptions, False),
    (orders, False),
    (events, True),
]


def make() -> Iterator[Replay]:
    for make_records, one_line in LISTS:
        records = make_records()
        shown, whole = _text(records[:SHOWN], one_line), _text(records, one_line)
        start = shown.removesuffix("\n]")
        assert whole.startswith(start)
        yield Replay(
            prompt="Complete this list of records. Every record follows the JSON schema\n\n"
            f"```json\n{json.dumps(schema(records[0]))}\n```\n\n```json\n{start}",
            reference=whole[len(start) :] + "\n",
            name=make_records.__name__,
            workload="json",
        )


def _text(records: Records, one_line: bool) -> str:
    if not one_line:
        return json.dumps(records, indent=2, ensure_ascii=False)
    lines = [f"  {json.dumps(record, ensure_ascii=False)}" for record in records]
    return "[\n" + ",\n".join(lines) + "\n]"


def schema(value: Any) -> dict[str, Any]:
    """Return the JSON schema of values like this one."""
    if isinstance(value, dict):
        properties = {key: schema(each) for key, each in value.items()}
        return {"type": "object", "properties": properties, "required": list(value)}
    if isinstance(value, list):
        return {"type": "array", "items": schema(value[0]) if value else {}}
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": names[type(value)]}
