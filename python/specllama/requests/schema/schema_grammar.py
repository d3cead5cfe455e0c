"""A JSON schema as a grammar."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SchemaGrammar:
    """A JSON schema as a grammar.

    Attributes:
        text: The schema in the form that llguidance follows, as JSON.
        left: What restricts values but is left to the model, keywords as JSON has them.
        remarks: Clauses about what is checked differently, and harms nobody.
    """

    text: str
    left: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """All that differs from the schema, as clauses."""
        return [*(f"{one} is not enforced" for one in self.left), *self.remarks]
