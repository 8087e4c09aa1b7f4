"""Counts: how many rows of one type a write, or the way between two commits, changed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows came, changed and went; true if any did."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __bool__(self) -> bool:
        return bool(self.inserted or self.updated or self.deleted)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.inserted + other.inserted,
            self.updated + other.updated,
            self.deleted + other.deleted,
        )

    def __sub__(self, other: Counts) -> Counts:
        return Counts(
            self.inserted - other.inserted,
            self.updated - other.updated,
            self.deleted - other.deleted,
        )
