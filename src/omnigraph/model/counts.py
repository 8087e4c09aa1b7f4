"""Counts: how many rows of one type were inserted, updated and deleted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows were inserted, updated and deleted; true if any were."""

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
