"""Limits of a request that the size of its body does not imply."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from specllama.requests.json_text import parts_of
from specllama.server.error import ApiError

MOST_CHOICES = 128
"""Maximum number of answers to a request, for all its prompts."""

MOST_OBJECTS = 4096
"""Maximum length of a list of objects: messages, their calls, items, files."""

MOST_TOOLS = 128

MOST_BIASES = 1 << 16
"""Maximum number of tokens with a logit bias. Choosing a token takes time for each of them."""

_MOST_TEXTS = 64
_MOST_BYTES_OF_TEXTS = 4096
"""Limits of a list of texts that every generated token is compared with, such as stop strings."""

_MOST_BYTES_OF_SCHEMA = 1 << 18
_DEEPEST_SCHEMA = 64
_MOST_REFERENCES = 2000


def check_number(field: str, n: int, most: int, what: str) -> None:
    """Raise ApiError if a field has more than `most` of something.

    Args:
        field: The field's full name.
        n: Their number.
        most: Their maximum number.
        what: Their name in the error message.
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
