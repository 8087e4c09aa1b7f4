"""Results of a match: groups, totals, order and limit, without SQL where they are plain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.local.matching.grouping import group_rows
from omnigraph.engine.local.matching.join import MatchedRows, collect
from omnigraph.engine.local.matching.match import MatchedGraph, PatternMatch
from omnigraph.engine.local.matching.memory import Memory
from omnigraph.engine.local.matching.sources import Source, UnmatchableError, take
from omnigraph.engine.protocol import Data
from omnigraph.engine.results import conform
from omnigraph.errors import ErrorCode, LimitExceededError
from omnigraph.limits import MATCHED_ROWS_MAX, QUERY_BYTES_MIN
from omnigraph.relational.patterns import Function, PatternPlan, PlainResults, Result, Total, Use
from omnigraph.relational.plans import Plan

_SHARES: Final = 4
"""Parts of the memory of a query that what is left is rounded down to."""

_SORTED_ROWS_MAX: Final = 1 << 17
"""Rows that are sorted here; DuckDB sorts more of them on all cores."""


def answer(matching: PatternPlan, graph: MatchedGraph) -> pa.Table:
    """The result of a plan by its matching."""
    match = PatternMatch.of(
        graph, matching.pattern, matching.kept, sums=matching.sums, ids=matching.ids
    )
    found = collect(match)
    if matching.weight is None:
        found = _repeat(found, graph.memory)
    results = _Results(matching, match.sources, found)
    shape = matching.shape
    if shape is not None and results.are_plain(shape):
        if graph.memory.is_limited:
            graph.memory.require(2 * found.nbytes + results.count_bytes() + _sorted_bytes(found))
        return conform(results.table(shape), matching.results.columns)
    if graph.memory.is_limited:
        graph.memory.require(found.nbytes + results.count_bytes())
    return _by_sql(graph, matching.results, results.rows())


def _by_sql(graph: MatchedGraph, plan: Plan, rows: pa.Table) -> pa.Table:
    """The results that SQL makes of rows."""
    (relation,) = plan.relations
    budget = graph.data.budget
    left = graph.memory.left()
    if budget.memory is not None and left is not None:
        bytes_left = _round_down(left - rows.nbytes, int(budget.memory.value))
        budget = replace(budget, memory=replace(budget.memory, value=bytes_left))
    try:
        return graph.run(plan, Data(graph.data.table, {relation: rows}, budget))
    except LimitExceededError as error:
        if error.code is not ErrorCode.QUERY_MEMORY:
            raise
        # There is more of it without arrays.
        raise UnmatchableError(error.message) from error


def _round_down(bytes_left: int, bytes_max: int) -> int:
    """What SQL may hold. There are few such sizes, as a database is kept for each."""
    share = bytes_max // _SHARES
    rounded = bytes_left // share * share
    if rounded < QUERY_BYTES_MIN:
        message = "the rows that are found take nearly all memory of the query"
        raise UnmatchableError(message)
    return rounded


def _repeat(found: MatchedRows, memory: Memory) -> MatchedRows:
    """A row for each match."""
    if found.weight is None:
        return found
    # In Python, where sums do not wrap.
    total = sum(found.weight.tolist())
    if total > MATCHED_ROWS_MAX:
        message = f"more than {MATCHED_ROWS_MAX:,} rows are found"
        raise UnmatchableError(message)
    memory.require(found.nbytes + 4 * len(found.columns) * total)
    columns = {name: np.repeat(each, found.weight) for name, each in found.columns.items()}
    return MatchedRows(columns, total)


@dataclass(frozen=True, slots=True)
class _Results:
    matching: PatternPlan
    sources: Mapping[str, Source]
    found: MatchedRows

    def pick(self, rows: np.ndarray) -> _Results:
        """Some of the rows, by position."""
        return _Results(self.matching, self.sources, self.found.pick(rows))

    def rows(self) -> pa.Table:
        """The rows for the plan of the results."""
        matching, found = self.matching, self.found
        arrays: dict[str, pa.Array | pa.ChunkedArray] = {
            name: take(self.sources[variable], column, found.columns[variable])
            for (variable, column), name in matching.columns.items()
        }
        if matching.weight is not None:
            arrays[matching.weight] = pa.array(_weight(found))
            for each in matching.sums:
                arrays[each.name] = self._sum(each.use, counts=each.counts)
        if not arrays:
            # The plan only wants to know how many rows there are.
            arrays["v0"] = pa.array(np.ones(found.count, np.int64))
        return pa.table(arrays)

    def count_bytes(self) -> int:
        """About what the rows for the plan of the results take."""
        byte_count = 8 * (1 + len(self.matching.sums)) * self.found.count
        for variable, name in self.matching.columns:
            column = self.sources[variable].column(name)
            byte_count += column.nbytes * self.found.count // max(1, len(column))
        return byte_count

    def are_plain(self, shape: PlainResults) -> bool:
        """Whether numbers decide about groups and order, and rows are not too many to sort."""
        if shape.keys is None:
            return self.found.count <= _SORTED_ROWS_MAX
        return not any(
            pa.types.is_floating(self.sources[variable].column(name).type)
            for variable, name in shape.keys
            if name != "id"
        )

    def table(self, shape: PlainResults) -> pa.Table:
        """The results, in order."""
        results = self
        if shape.keys is not None:
            results = _Results(self.matching, self.sources, self._groups(shape.keys))
            if not shape.keys:
                return results.table_of_one(shape)
        final = results.pick(results.order(shape))
        arrays = [final.values(result) for result in shape.columns]
        return pa.Table.from_arrays(arrays, names=[str(place) for place in range(len(arrays))])

    def table_of_one(self, shape: PlainResults) -> pa.Table:
        """The totals over all rows, which there may be none of."""
        if self.found.count:
            arrays = [self.values(result) for result in shape.columns]
        else:
            arrays = [_nothing(result) for result in shape.columns]
        if shape.limit == 0:
            arrays = [array.slice(0, 0) for array in arrays]
        return pa.Table.from_arrays(arrays, names=[str(place) for place in range(len(arrays))])

    def _groups(self, keys: Sequence[Use]) -> MatchedRows:
        """The rows whose keys are equal, together."""
        found = self.found
        names: dict[str, list[str]] = {variable: [] for variable in found.columns}
        for variable, name in keys:
            names[variable].append(name)
        if all("id" in columns for columns in names.values()) and found.columns:
            return found
        codes: list[np.ndarray] = []
        for variable, columns in names.items():
            numbers = found.columns[variable]
            if "id" in columns:
                codes.append(numbers)
                continue
            distinct, place = np.unique(numbers, return_inverse=True)
            for name in columns:
                values = take(self.sources[variable], name, distinct)
                codes.append(_codes(values)[place])
        rows, weight, sums = group_rows(codes, found.count, found.weight, found.sums)
        picked = {name: each[rows] for name, each in found.columns.items()}
        return MatchedRows(picked, len(rows), weight, sums)

    def values(self, result: Result) -> pa.Array | pa.ChunkedArray:
        if not isinstance(result, Total):
            variable, column = result
            return take(self.sources[variable], column, self.found.columns[variable])
        assert result.use is not None, "it has an argument"
        number = _weight(self.found)
        if result.nullable:
            number = self.found.sums[self._name(result.use, counts=True)]
        if result.function is Function.COUNT:
            return pa.array(number)
        total = self.found.sums[self._name(result.use, counts=False)]
        if result.function is Function.SUM:
            return pa.array(total, mask=number == 0)
        with np.errstate(all="ignore"):
            return pa.array(total.astype(np.float64) / number, mask=number == 0)

    def _sum(self, use: Use, *, counts: bool) -> pa.Array:
        total = self.found.sums[self._name(use, counts=counts)]
        if counts:
            return pa.array(total)
        numbers = [each.name for each in self.matching.sums if each.use == use and each.counts]
        mask = self.found.sums[numbers[0]] == 0 if numbers else None
        return pa.array(total, mask=mask)

    def _name(self, use: Use, *, counts: bool) -> str:
        return next(
            each.name for each in self.matching.sums if each.use == use and each.counts == counts
        )

    def order(self, shape: PlainResults) -> np.ndarray:
        """The rows to return, in order."""
        rows = np.arange(self.found.count)
        if not self.found.count or not shape.order:
            return rows[: shape.limit]
        results = list(dict.fromkeys(result for result, _ in shape.order))
        first, descending = shape.order[0]
        if shape.limit is not None and isinstance(first, Total) and len(rows) > shape.limit:
            rows = _first_rows(_sort_keys(self.values(first), descending=descending), shape.limit)
        picked = self.pick(rows)
        values = {result: picked.values(result) for result in results}
        keys: list[np.ndarray] = []
        for result, down in shape.order:
            keys += _sort_keys(values[result], descending=down)
        order = np.lexsort(keys[::-1])
        return rows[order[: shape.limit]]


def _sorted_bytes(found: MatchedRows) -> int:
    """About what rows take while they are grouped and sorted."""
    return 16 * (2 + len(found.columns)) * found.count


def _weight(found: MatchedRows) -> np.ndarray:
    return np.ones(found.count, np.int64) if found.weight is None else found.weight


def _nothing(result: Result) -> pa.Array:
    """The total of no rows."""
    assert isinstance(result, Total), "without keys there are only totals"
    if result.function is Function.COUNT:
        return pa.array([0], pa.int64())
    return pa.nulls(1, pa.int64() if result.function is Function.SUM else pa.float64())


def _codes(values: pa.ChunkedArray) -> np.ndarray:
    """Equal numbers for equal values; null is a value."""
    encoded = values.combine_chunks().dictionary_encode(null_encoding="encode")
    codes: np.ndarray = encoded.indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)


def _first_rows(keys: Sequence[np.ndarray], limit: int) -> np.ndarray:
    """The rows that may be among the first ones, by one key of the order."""
    if limit == 0:
        return np.arange(0)
    *masks, values = keys
    if any(mask.any() and not mask.all() for mask in masks):
        return np.arange(len(values))
    bound = np.partition(values, limit - 1)[limit - 1]
    return np.flatnonzero(values <= bound)


def _sort_keys(values: pa.Array | pa.ChunkedArray, *, descending: bool) -> list[np.ndarray]:
    """Arrays that sort as the values do: nulls first, and last descending; NaN is the greatest."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    keys: list[np.ndarray] = []
    if array.null_count:
        is_valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
        keys.append(~is_valid if descending else is_valid)
    kind = array.type
    if pa.types.is_date(kind):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        array = array.cast(pa.int64())
    elif pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        array = pc.rank(array, sort_keys="ascending", tiebreaker="dense")
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(0, array.type))
    numbers: np.ndarray = array.to_numpy(zero_copy_only=False)
    if numbers.dtype.kind == "f":
        is_nan = np.isnan(numbers)
        numbers = np.where(is_nan, 0.0, numbers)
        return [*keys, ~is_nan if descending else is_nan, -numbers if descending else numbers]
    # The complement reverses the order of whole numbers, and there is none that it does not have.
    return [*keys, ~numbers if descending else numbers]
