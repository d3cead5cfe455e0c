"""A JSON schema as a grammar."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SchemaGrammar:
    """A JSON schema as a grammar.

    Attributes:
        text: The schema in the form that llguidance supports, as JSON.
        left: Keywords, as JSON, that restrict values but are not enforced.
        remarks: Clauses about harmless differences from the schema.
    """

    text: str
    left: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """All differences from the schema, as clauses."""
        return [*(f"{one} is not enforced" for one in self.left), *self.remarks]
