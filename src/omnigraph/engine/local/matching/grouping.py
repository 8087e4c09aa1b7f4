"""Groups of rows by numbers: block after block, with the sums of weights in each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from omnigraph.engine.local.matching.memory import count_bytes
from omnigraph.engine.local.matching.weights import add_by_group, plus
from omnigraph.limits import MATCHED_BLOCK_STEPS

_MERGED_ROWS_MIN: Final = 1 << 20
"""Rows that have been collected from which on their groups are merged."""

_MERGED_BYTES_PER_ROW: Final = 48
"""About what a row takes while it is merged with others."""

_CODES_MAX: Final = 1 << 62

_CODES_PER_ROW_MAX: Final = 4
"""Codes up to the highest one, for each row, up to which groups are counted and not sorted."""

Groups = tuple[dict[str, np.ndarray], int, np.ndarray | None, dict[str, np.ndarray]]
"""Columns, the number of rows, their weights, and their sums."""


@dataclass(slots=True)
class Grouping:
    """Collects rows, and gives each combination of their columns once.

    Attributes:
        sizes: The names of the columns, and a number above all of each.
        is_distinct: Whether no combination is given twice.
        may_repeat: Whether a combination may come out several times, with only some of its weight.
    """

    sizes: Mapping[str, int]
    is_distinct: bool
    may_repeat: bool = False
    parts: list[Groups] = field(default_factory=list)
    count: int = 0
    dense: _Dense | None = None

    def __post_init__(self) -> None:
        if not self.is_distinct and len(self.sizes) <= 1:
            size = max(self.sizes.values(), default=1)
            if size <= 4 * MATCHED_BLOCK_STEPS:
                self.dense = _Dense(size)

    def add(
        self,
        columns: Mapping[str, np.ndarray],
        count: int,
        weight: np.ndarray | None,
        sums: Mapping[str, np.ndarray],
    ) -> None:
        """Add rows."""
        if self.dense is not None:
            numbers = next(iter(columns.values()), None)
            self.dense.add(np.zeros(count, np.int64) if numbers is None else numbers, weight, sums)
            return
        part = dict(columns), count, weight, dict(sums)
        self.parts.append(part if self.is_distinct or self.may_repeat else merge([part]))
        self.count += self.parts[-1][1]
        if not self.is_distinct and self.count > _MERGED_ROWS_MIN and len(self.parts) > 1:
            self.parts = [merge(self.parts)]
            self.count = self.parts[0][1]

    @property
    def nbytes(self) -> int:
        """The memory that it holds, and about as much as it takes to join what it holds."""
        if self.dense is not None:
            return count_bytes(self.dense.weight, self.dense.sums)
        held = sum(count_bytes(columns, weight, sums) for columns, _, weight, sums in self.parts)
        is_merged = not self.is_distinct and not self.may_repeat
        return 2 * held + (_MERGED_BYTES_PER_ROW * self.count if is_merged else 0)

    def result(self) -> Groups:
        """The rows, with their weights and sums."""
        if self.dense is not None:
            return self.dense.result(list(self.sizes))
        if not self.parts:
            return {name: np.empty(0, np.uint32) for name in self.sizes}, 0, None, {}
        is_done = self.is_distinct or self.may_repeat
        return _concatenate(self.parts) if is_done else merge(self.parts)


@dataclass(slots=True)
class _Dense:
    """Sums for each number of the only column, or for all rows."""

    size: int
    weight: np.ndarray | None = None
    sums: dict[str, np.ndarray] = field(default_factory=dict)

    def add(
        self, numbers: np.ndarray, weight: np.ndarray | None, sums: Mapping[str, np.ndarray]
    ) -> None:
        self.weight = plus(self.weight, add_by_group(weight, numbers, self.size))
        for name, values in sums.items():
            added = add_by_group(values, numbers, self.size)
            self.sums[name] = plus(self.sums.get(name), added)

    def result(self, names: Sequence[str]) -> Groups:
        if self.weight is None:
            return {name: np.empty(0, np.uint32) for name in names}, 0, None, {}
        numbers = np.flatnonzero(self.weight)
        sums = {name: values[numbers] for name, values in self.sums.items()}
        columns = {name: numbers.astype(np.uint32) for name in names}
        return columns, len(numbers), self.weight[numbers], sums


def merge(parts: Sequence[Groups]) -> Groups:
    """Each combination of columns once, with the sums of its weights."""
    columns, count, weight, sums = _concatenate(parts)
    if not count:
        return columns, count, weight, sums
    rows, weight, sums = group_rows(list(columns.values()), count, weight, sums)
    return {name: values[rows] for name, values in columns.items()}, len(rows), weight, sums


def group_rows(
    columns: Sequence[np.ndarray],
    count: int,
    weight: np.ndarray | None,
    sums: Mapping[str, np.ndarray],
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """A row of each combination of columns, and the weights and sums of all its rows."""
    codes = codes_of(columns) if columns else np.zeros(count, np.int64)
    rows, groups = _number_groups(codes)
    totals = {name: add_by_group(values, groups, len(rows)) for name, values in sums.items()}
    return rows, add_by_group(weight, groups, len(rows)), totals


def _number_groups(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A row of each group, by ascending code, and the number of the group of each row."""
    size = int(codes.max(initial=-1)) + 1
    if size > _CODES_PER_ROW_MAX * len(codes):
        _, rows, groups = np.unique(codes, return_index=True, return_inverse=True)
        return rows, groups
    # Codes that are small are counted, which is faster than to sort them.
    first_rows = np.full(size, -1)
    first_rows[codes[::-1]] = np.arange(len(codes))[::-1]
    is_group = first_rows >= 0
    numbers = np.cumsum(is_group) - 1
    return first_rows[is_group], numbers[codes]


def codes_of(columns: Sequence[np.ndarray]) -> np.ndarray:
    """One whole number for each row, equal where the rows are.

    >>> codes_of([np.array([7, 7, 9]), np.array([1, 2, 1])]).tolist()
    [22, 23, 28]
    """
    codes = columns[0].astype(np.int64)
    for column in columns[1:]:
        size = int(column.max(initial=0)) + 1
        if (int(codes.max(initial=0)) + 1) * size > _CODES_MAX:
            codes = np.unique(codes, return_inverse=True)[1]
        codes = codes * size + column
    return codes


def _concatenate(parts: Sequence[Groups]) -> Groups:
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([part[0][name] for part in parts]) for name in parts[0][0]}
    count = sum(part[1] for part in parts)
    weight: np.ndarray | None = None
    if any(part[2] is not None for part in parts):
        weights = (np.ones(part[1], np.int64) if part[2] is None else part[2] for part in parts)
        weight = np.concatenate(list(weights))
    sums = {name: np.concatenate([part[3][name] for part in parts]) for name in parts[0][3]}
    return columns, count, weight, sums
