"""JSON schemas of Python types: pydantic models, dataclasses, TypedDicts and others."""

from __future__ import annotations

from typing import Any, get_origin

from specllama import _check
from specllama.errors import ArgumentError


def is_type(value: Any) -> bool:
    """Return whether a value is a type: a class, a generic such as list[int], or a type alias."""
    is_alias = type(value).__name__ == "TypeAliasType"  # of typing, or of typing_extensions
    return isinstance(value, type) or get_origin(value) is not None or is_alias


def own_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type, made by pydantic.

    Sets are lists in JSON. The schema allows equal items in them: a grammar cannot exclude these,
    and pydantic accepts them.

    Raises:
        ArgumentError: pydantic is not installed, or the type has no JSON schema.
    """
    try:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError
        from pydantic.json_schema import GenerateJsonSchema
    except ImportError:
        raise ArgumentError(
            f"json_schema is the type {_check.quoted(kind)}. Its schema needs pydantic, which is "
            "not installed: pip install pydantic, or give the schema as a dict."
        ) from None

    class Generator(GenerateJsonSchema):
        def set_schema(self, schema: Any) -> Any:
            return self._any_items(super().set_schema(schema))

        def frozenset_schema(self, schema: Any) -> Any:
            return self._any_items(super().frozenset_schema(schema))

        def _any_items(self, schema: Any) -> Any:
            schema.pop("uniqueItems", None)
            return schema

    try:
        return TypeAdapter(kind).json_schema(schema_generator=Generator)
    except PydanticUserError as error:
        reason = str(error).partition("\n")[0]
        raise ArgumentError(
            f"json_schema is the type {_check.quoted(kind)}, which has no schema: {reason:.200}."
        ) from None
