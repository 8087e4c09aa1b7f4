"""Commits that expired, as data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from omnigraph.model.brief import brief


@brief
@dataclass(frozen=True, slots=True)
class LetGo:
    """When a commit expired, and by which rule."""

    at: datetime
    rule: str

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} by {self.rule}"
