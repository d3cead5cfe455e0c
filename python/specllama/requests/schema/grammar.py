"""Grammars of JSON schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from specllama.errors import ArgumentError
from specllama.requests.json_text import parsed
from specllama.requests.schema.asked import complaint
from specllama.requests.schema.prepared import Prepared
from specllama.requests.schema.repaired import SchemaError
from specllama.requests.schema.schema_grammar import SchemaGrammar

_SPACE = " "
"""The only white space (besides none) allowed where JSON allows any: with more, a model might never
stop, and indentation would only cost tokens."""

_SHORT_ESCAPES = 'nrbtf\\"'
_CONTROLS = re.compile(r"\\u00[01]")


def schema_grammar(schema: Any, *, strict: bool = False) -> SchemaGrammar:
    """Return the grammar of a JSON schema.

    Args:
        schema: The schema as a Python value; {} or True: any JSON value.
        strict: Refuse a schema that cannot be enforced completely.

    Raises:
        ArgumentError: It is not a schema, is too large, or allows no value.
    """
    found = _grammar_of(_written(schema))
    if strict and found.left:
        what = ", ".join(found.left)
        raise ArgumentError(f"json_schema has {what:.300}, which cannot be enforced; leave it out.")
    return found


@lru_cache(maxsize=256)
def _grammar_of(written: str) -> SchemaGrammar:
    try:
        prepared = Prepared(parsed(written))
    except SchemaError as error:
        raise ArgumentError(f"json_schema has {error!s:.300}.") from None
    except ValueError as error:
        raise ArgumentError(f"json_schema cannot be read: {error!s:.200}.") from None
    except RecursionError:
        raise ArgumentError("json_schema nests too deep.") from None
    whole = {"allOf": []} if prepared.schema is True else prepared.schema
    if whole is False:
        raise ArgumentError("json_schema is false, so no value follows it.")
    options: dict[str, Any] = {"whitespace_pattern": _SPACE}
    if not prepared.has_other_names:
        options["json_allow_general_unicode_escapes"] = True
    elif not _CONTROLS.search(written):
        # Otherwise another property could have the name of a listed one, spelled with \u.
        options["json_allowed_escapes"] = _SHORT_ESCAPES
    text = json.dumps({**whole, "x-guidance": options}, ensure_ascii=False)
    if reason := complaint(text):
        raise ArgumentError(_sentence(reason))
    return SchemaGrammar(text, tuple(prepared.left), tuple(prepared.remarks))


def _sentence(reason: str) -> str:
    """Turn llguidance's complaint about a schema into a message."""
    first = reason.partition("\n")[0]
    detail = first.removeprefix("Unsatisfiable schema: ")
    what = "cannot be followed" if detail == first else "allows no value"
    return f"json_schema {what}: {detail:.200}."


def _written(schema: Any) -> str:
    try:
        written = json.dumps(schema, ensure_ascii=False, default=_as_dict)
        written.encode()
    except TypeError as error:
        raise ArgumentError(f"json_schema {error}.") from None
    except UnicodeEncodeError:
        raise ArgumentError("json_schema has a lone surrogate, which is not a character.") from None
    except RecursionError:
        raise ArgumentError("json_schema nests too deep.") from None
    except ValueError:
        raise ArgumentError("json_schema has a number that is too large, or itself.") from None
    return written


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"has a {type(value).__name__}, which is not a JSON value")
