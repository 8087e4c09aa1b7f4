"""Counts of what writes and runs did about vectors."""

from __future__ import annotations

from dataclasses import dataclass


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
