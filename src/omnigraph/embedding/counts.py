"""Counts of what writes and runs did about vectors."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.model.brief import brief


@dataclass(frozen=True, slots=True)
class EmbeddingCounts:
    """What a write did about vectors.

    Attributes:
        embedded: Vectors that were made, and `reused` those that committed rows had of the text.
        waiting: Rows that have a text and not its vector.
    """

    embedded: int = 0
    reused: int = 0
    waiting: int = 0

    def __add__(self, other: EmbeddingCounts) -> EmbeddingCounts:
        return EmbeddingCounts(
            self.embedded + other.embedded,
            self.reused + other.reused,
            self.waiting + other.waiting,
        )


@brief
@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    """How many rows of a type are in each state of one vector.

    Attributes:
        property_name: The name of the vector.
        current: Rows that have the vector of their text.
        stale: Rows with a vector of another text or model, or of nobody knows what.
        pending: Rows with a text and without a vector.
        empty: Rows without a text.
    """

    type_name: str
    property_name: str
    model: str
    current: int
    stale: int
    pending: int
    empty: int

    @property
    def waiting(self) -> int:
        """Rows that `embed` embeds."""
        return self.pending + self.stale
