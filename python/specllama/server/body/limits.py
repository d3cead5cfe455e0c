"""How much a request may ask for, where the bytes of its body do not bound it well enough."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from specllama.requests.json_text import parts_of
from specllama.server.error import ApiError

MOST_CHOICES = 128
"""Most answers to a request, for all its prompts."""

MOST_OBJECTS = 4096
"""Most objects of a list: messages, their calls, items, files."""

MOST_TOOLS = 128

MOST_BIASES = 1 << 16
"""Most tokens of a request whose logits are changed; every token that is chosen looks at all."""

_MOST_TEXTS = 64
_MOST_BYTES_OF_TEXTS = 4096
"""For lists of texts that every generated token is compared with, such as stop strings."""

_MOST_BYTES_OF_SCHEMA = 1 << 18
_DEEPEST_SCHEMA = 64
_MOST_REFERENCES = 2000


def check_number(field: str, n: int, most: int, what: str) -> None:
    """Raise ApiError if a field has more than `most` of something.

    Args:
        field: The field's full name.
        n: How many it has.
        most: How many it may have.
        what: What it has.
    """
    if n > most:
        raise ApiError(400, f"{field} has {n} {what}; at most {most} are allowed.", param=field)


def check_texts(field: str, texts: Sequence[str]) -> None:
    """Raise ApiError if texts that every generated token is compared with are too many or too
    long."""
    check_number(field, len(texts), _MOST_TEXTS, "strings")
    n_bytes = sum(len(one.encode(errors="surrogatepass")) for one in texts)
    check_number(field, n_bytes, _MOST_BYTES_OF_TEXTS, "bytes")


def check_schema(field: str, schema: Any) -> None:
    """Raise ApiError if a JSON schema has too many bytes or references, or nests too deep."""
    written = json.dumps(schema, ensure_ascii=False)
    n_bytes = len(written.encode(errors="surrogatepass"))
    check_number(field, n_bytes, _MOST_BYTES_OF_SCHEMA, "bytes")
    n_references = depth = 0
    level = [schema]
    while level:
        check_number(field, depth, _DEEPEST_SCHEMA, "levels of nesting")
        depth += 1
        n_references += sum(isinstance(one, dict) and "$ref" in one for one in level)
        level = [part for one in level for part in parts_of(one)]
    check_number(field, n_references, _MOST_REFERENCES, "references")
