"""Routes: how each row of an input without one type says which type it is of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class ByColumn:
    """A column has the name of each row's type; the others are properties, null where not its."""

    column: str


@dataclass(frozen=True, slots=True)
class ByEnvelope:
    """A column has the whole row: an envelope, as a line of a graph file."""

    column: str


Route: TypeAlias = ByColumn | ByEnvelope


@dataclass(frozen=True, slots=True)
class RoutedRows:
    """Rows of several types, in this process or as a DataFrame of Spark."""

    rows: Any = field(repr=False)
    route: Route
