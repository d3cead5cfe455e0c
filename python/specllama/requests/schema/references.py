"""Resolves the references of a JSON schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

_DATA = frozenset({"const", "enum", "default", "example", "examples"})
"""Keywords whose values are data, even if they look like schemas."""


class References:
    """Finds the targets of references inside a schema: by pointer (#/$defs/name), by anchor
    (#name), and by the `$id` of a part.

    Args:
        schema: The whole schema.
    """

    def __init__(self, schema: Any) -> None:
        # Up to draft 7, keywords next to a $ref are ignored.
        draft = schema.get("$schema") if isinstance(schema, dict) else None
        self._is_old = "draft-0" in str(draft)
        self._bases: dict[int, str] = {}
        self._targets: dict[str, Any] = {"": schema}
        self._kept = [schema]  # so that no id() is used twice
        parts: list[tuple[Any, str]] = [(schema, "")]
        while parts:
            part, base = parts.pop()
            if isinstance(part, list):
                parts += ((one, base) for one in part)
            elif isinstance(part, dict):
                base = self._enter(part, base)
                parts += ((one, base) for key, one in part.items() if key not in _DATA)

    def _enter(self, part: Mapping[str, Any], base: str) -> str:
        """Record the names of a part; return the URI against which its references resolve."""
        name = part.get("$id")
        if isinstance(name, str) and not (self._is_old and "$ref" in part):
            uri = _joined(base, name)
            self._targets.setdefault(uri, part)
            base = base if name.startswith("#") else urldefrag(uri).url
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(part.get(key), str):
                self._targets.setdefault(f"{base}#{part[key]}", part)
        if base:
            self._bases[id(part)] = base
        return base

    def target(self, schema: Mapping[str, Any]) -> Any:
        """Return the target of the reference in a schema. Raises LookupError if it is not inside
        the whole schema."""
        reference = schema["$ref"]
        if not isinstance(reference, str):
            raise LookupError(reference)
        uri = _joined(self._bases.get(id(schema), ""), reference)
        if uri.rstrip("#") in self._targets:
            return self._targets[uri.rstrip("#")]
        document, pointer = urldefrag(uri)
        if pointer and not pointer.startswith("/"):
            raise LookupError(reference)
        found = self._targets[document]
        for name in pointer.split("/")[1:]:
            try:
                found = found[int(name)] if isinstance(found, list) else _member(found, name)
            except (ValueError, TypeError):
                raise LookupError(reference) from None
        return found


def _joined(base: str, uri: str) -> str:
    try:
        return urljoin(base, uri)
    except ValueError:  # such as http://[
        return uri


def _member(found: Any, name: str) -> Any:
    return found[name if name in found else unquote(name).replace("~1", "/").replace("~0", "~")]
