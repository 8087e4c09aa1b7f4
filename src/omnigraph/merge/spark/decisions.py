"""Three-way decisions in executors: each task has all rows of some ids."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.records import TableChanges, ids_of
from omnigraph.changes.spark.tables import compare_parts, local_engine, no_data
from omnigraph.changes.tables import rows_of
from omnigraph.changes.wide import WideValues
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.pieces import by_one, collect_parts
from omnigraph.manifest.merge_bases import Base
from omnigraph.merge.conflicts import Conflict
from omnigraph.merge.decisions import Merged, ThreeWay, adopt
from omnigraph.merge.resolutions import Resolutions
from omnigraph.merge.virtual import TableFolds
from omnigraph.model.counts import Counts
from omnigraph.model.ids import CommitId
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.carried import NOWHERE, Fragments, find_carried
from omnigraph.storage.places import fragment_ids_of, offsets_of, to_addresses
from omnigraph.storage.scans import open_address
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID, TableAddress

PLACES: Final = (pa.field(ROW_ID, pa.uint64()), pa.field(ROW_ADDRESS, pa.uint64()))
"""Where a row lies, beside its columns."""

_BASE_OF_THEIRS, _THEIRS, _BASE_OF_OURS, _OURS = range(4)
"""What arrives: of theirs against the base's anchor, and of ours against it; then, of each pair of
commits that a virtual base is folded from, the one against the other."""


class Part(IntEnum):
    """The output of a decision: new rows, rows with `PLACES`, deletions, conflicts, and so on."""

    ADDED = 0
    REPLACED = 1
    DELETED = 2
    CONFLICTS = 3
    REPORT = 4
    RESTORED = 5
    RETAINED = 6


CONFLICTS: Final = pa.schema(
    [
        *(pa.field(name, pa.utf8()) for name in ("id", "property", "kind")),
        pa.field("conflict", pa.binary()),
    ]
)
"""Conflicts, pickled, with what they are ordered by."""

REPORT: Final = "report"
_REPORTS: Final = pa.schema([pa.field(REPORT, pa.binary())])


@dataclass(frozen=True, slots=True)
class DecisionReport:
    """What one task decided, in numbers.

    Attributes:
        used: The places of resolutions that were about its rows.
    """

    counts: Counts
    conflict_count: int
    survivor_count: int
    used: frozenset[tuple[str, str | None, str | None]]

    @classmethod
    def of(cls, data: bytes) -> DecisionReport:
        """The report that a task has left."""
        report = pickle.loads(data)
        assert isinstance(report, cls), "nothing else is in this place"
        return report

    def rows(self) -> pa.Table:
        """The row that a task leaves beside the others."""
        return pa.table({REPORT: [pickle.dumps(self)]}, _REPORTS)


@dataclass(frozen=True, slots=True)
class TargetPlaces:
    """Where the target has rows that it has not written since the base's anchor.

    Attributes:
        fragments: The ids of fragments of the anchor, and of the same ones in the target.
        address: The target, if it lacks fragments of the anchor; None otherwise.
        others: The positions of its other fragments: rows may have been carried over to them.
        common: The newest version that both have in common; None if that is unknown, and then no
            row counts as carried over.
    """

    fragments: Mapping[int, int] = field(default_factory=dict)
    address: TableAddress | None = None
    others: tuple[int, ...] = ()
    common: int | None = None

    def find(self, row_ids: np.ndarray, addresses: np.ndarray) -> np.ndarray:
        """The addresses in the target of rows with these addresses in the anchor, or `NOWHERE`."""
        fragment_ids, at = np.unique(fragment_ids_of(addresses), return_inverse=True)
        owners = np.array([self.fragments.get(id_, -1) for id_ in fragment_ids.tolist()], np.int64)
        is_same = owners[at] >= 0
        there = np.full(len(addresses), NOWHERE)
        there[is_same] = to_addresses(owners[at][is_same], offsets=offsets_of(addresses[is_same]))
        if self.address is not None and self.common is not None and not is_same.all():
            others = Fragments(open_address(self.address), self.others)
            there[~is_same] = find_carried(others, row_ids[~is_same], self.common)
        return there


@dataclass(frozen=True, slots=True)
class DecideTask:
    """All an executor needs to decide about rows.

    Attributes:
        adopts: Whether the target has the table as the base had it: all of theirs is taken.
        target: Where the target has rows of the base's anchor.
        base: What both sides come from, and `theirs` and `ours` the sides.
        pairs: The commits that are compared, in the order in which their parts arrive.
    """

    type: SchemaType
    adopts: bool
    resolutions: Resolutions
    strict_rows: bool
    target: TargetPlaces
    base: Base
    theirs: CommitId
    ours: CommitId
    pairs: tuple[tuple[CommitId, CommitId], ...]


def decide_bucket(task: DecideTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decide about the rows of some ids. Runs in an executor; safe to run twice."""
    with report_errors():
        for parts in collect_parts(batches).values():
            # Each task reports which of them it used.
            resolutions = replace(task.resolutions, used=set())
            merged = _merge_parts(task, parts, resolutions)
            used = frozenset(resolutions.used)
            survivors = merged.survivors
            survivor_count = len(survivors.restored) + len(survivors.retained)
            report = DecisionReport(merged.counts, len(merged.conflicts), survivor_count, used)
            yield from by_one(report.rows(), Part.REPORT)
            yield from by_one(_conflict_rows(merged.conflicts), Part.CONFLICTS)
            yield from by_one(merged.added, Part.ADDED)
            places = _places(task, parts)
            replaced, deleted = merged.replaced, pa.table({"id": merged.deleted})
            yield from by_one(_with_places(replaced, places), Part.REPLACED)
            yield from by_one(_with_places(deleted, places), Part.DELETED)
            yield from by_one(pa.table({"id": survivors.restored}), Part.RESTORED)
            yield from by_one(pa.table({"id": survivors.retained}), Part.RETAINED)


def _merge_parts(
    task: DecideTask, parts: Mapping[int, pa.Table], resolutions: Resolutions
) -> Merged:
    def compare(before: CommitId, after: CommitId) -> TableChanges:
        return compare_parts(task.type, parts.get, 2 * task.pairs.index((before, after)))

    if task.adopts:
        return adopt(compare(task.base.anchor, task.theirs))
    decider = ThreeWay(local_engine(), no_data(), resolutions, task.strict_rows)
    nothing = table_schema(task.type).empty_table()
    folds = TableFolds(task.type, compare, local_engine(), no_data(), nothing, WideValues())
    base = folds.fold(task.base)
    ours, theirs = base.changes_to(task.ours), base.changes_to(task.theirs)
    return decider.merge(ours, theirs, base.unsettled)


def _places(task: DecideTask, parts: Mapping[int, pa.Table]) -> pa.Table:
    """Where the target has rows: those that it changed, and those that it has as the base had."""
    columns = ["id", ROW_ID, ROW_ADDRESS]
    nothing = rows_of(task.type, (), PLACES).select(columns)
    ours = parts[_OURS].select(columns) if _OURS in parts else nothing
    base = parts[_BASE_OF_THEIRS].select(columns) if _BASE_OF_THEIRS in parts else nothing
    base = base.filter(pc.invert(pc.is_in(base["id"], value_set=ids_of(ours))))
    there = task.target.find(base[ROW_ID].to_numpy(), base[ROW_ADDRESS].to_numpy())
    # What the target has nowhere was deleted there, and cannot conflict.
    base = base.set_column(2, PLACES[1], pa.array(there)).filter(pa.array(there != NOWHERE))
    return pa.concat_tables([ours, base])


def _with_places(rows: pa.Table, places: pa.Table) -> pa.Table:
    """Rows beside where the target has them."""
    at = pc.index_in(ids_of(rows), value_set=ids_of(places))
    assert not at.null_count, "what changes in the target was read from there"
    for place in PLACES:
        rows = rows.append_column(place, places[place.name].take(at))
    return rows


def _conflict_rows(conflicts: tuple[Conflict, ...]) -> pa.Table:
    columns = (
        [each.id or "" for each in conflicts],
        [each.property or "" for each in conflicts],
        [str(each.kind) for each in conflicts],
        [pickle.dumps(each) for each in conflicts],
    )
    return pa.Table.from_arrays(list(map(pa.array, columns, CONFLICTS.types)), schema=CONFLICTS)
