"""Accepted schemas: their meaning, and their text."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.model.brief import brief
from omnigraph.schema import codec
from omnigraph.schema.catalog import Catalog


@brief
@dataclass(frozen=True, slots=True)
class AcceptedSchema:
    """A schema a graph has accepted: its meaning, and the text a person wrote for it."""

    catalog: Catalog
    text: str

    @property
    def digest(self) -> str:
        """The schema's identity: equal for texts that differ in layout and comments only."""
        return codec.digest(self.catalog)
