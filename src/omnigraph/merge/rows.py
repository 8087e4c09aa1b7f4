"""The rows of a merge: the versions that meet in a table, and what an engine does with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import pyarrow as pa

from omnigraph.changes.lifts import Lift, LiftPair
from omnigraph.changes.records import TableChanges, exclude_ids, ids_of
from omnigraph.changes.tables import compare_rows, compare_tables, wide_sources
from omnigraph.changes.wide import WideValues, is_reference, reference_schema
from omnigraph.engine.protocol import Data, Engine
from omnigraph.evolution.backfill import ColumnFiller
from omnigraph.integrity.deltas import POSITION, Delta, TableDelta, delta_schema
from omnigraph.manifest.merge_bases import Base
from omnigraph.merge.conflicts import Conflict
from omnigraph.merge.decisions import Merged, Survivors, ThreeWay, Unsettled, adopt
from omnigraph.merge.resolutions import Resolutions
from omnigraph.merge.virtual import TableFolds
from omnigraph.model.counts import Counts
from omnigraph.model.ids import CommitId
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage import heads
from omnigraph.storage.reshape import stage_reshaped_rows
from omnigraph.storage.staging import StagedWrite, delete_rows, stage_rows, write_rows
from omnigraph.storage.tables import Table


@dataclass(frozen=True, slots=True)
class Sides:
    """The versions of one table that meet in a merge.

    Attributes:
        type: The type that the merged schema has.
        base: What both sides come from.
        tables: By commit, the table: those of the base, theirs and ours; None where a commit has
            no such type.
        is_target_base: Whether the target has the table as the base, a commit, has it.
        lifts: By commit, how its rows become rows of the type; by default, they are such rows.
        dropped: By commit, the columns of the type that it has dropped: its rows are unchanged
            there.
    """

    type: SchemaType
    base: Base
    tables: Mapping[CommitId, Table | None]
    theirs: CommitId
    ours: CommitId
    is_target_base: bool
    lifts: Mapping[CommitId, Lift] = field(default_factory=dict)
    dropped: Mapping[CommitId, tuple[str, ...]] = field(default_factory=dict)

    def lift(self, commit: CommitId) -> Lift:
        """How rows of a commit become rows of the type."""
        return self.lifts.get(commit) or Lift.identity(self.type)

    def lift_pair(self, before: CommitId, after: CommitId) -> LiftPair:
        """How rows of two commits become rows of the type, to be compared."""
        return LiftPair(self.lift(before), self.lift(after))

    def wide_values(self) -> WideValues:
        """Finds the vectors and blobs of all rows that meet."""
        tables = {commit: table for commit, table in self.tables.items() if table is not None}
        sources = {
            table.address: wide_sources(self.lift(commit)) for commit, table in tables.items()
        }
        return WideValues(*tables.values(), sources=sources)


@dataclass(frozen=True, slots=True)
class TouchedRows:
    """The rows that decisions are about.

    Attributes:
        ids: By table, the rows themselves.
        sources: By table of edges, the nodes whose edges they are.
    """

    ids: dict[TableKey, set[str]] = field(default_factory=dict)
    sources: dict[TableKey, set[str]] = field(default_factory=dict)


class MergeRows(Protocol):
    """The rows of one merge, where an engine has them.

    `Merged` describes what happens to rows of this process; an engine may have more of them.
    """

    @property
    def conflicts(self) -> Sequence[Conflict]:
        """The undecided conflicts of rows, as far as they are named."""
        ...

    @property
    def conflict_count(self) -> int:
        """How much of it there is."""
        ...

    @property
    def conflicts_max(self) -> int | None:
        """How many conflicts are named; None for all of them."""
        ...

    def decide(self, sides: Sides) -> Merged | None:
        """Decide about a table; None if the merge does nothing to it."""
        ...

    def counts(self, merged: Merged) -> Counts:
        """What the merge does to a table, in numbers."""
        ...

    def survivors(self, merged: Merged) -> Survivors:
        """The rows of a table that the merge keeps although one side deleted them."""
        ...

    def delta(self, tables: Mapping[TableKey, Merged]) -> Delta:
        """All that the merge changes, for the rules to look at."""
        ...

    def bring(
        self, tables: dict[TableKey, Merged], touched: Callable[[], TouchedRows]
    ) -> dict[TableKey, Merged]:
        """The merge with these rows in this process.

        Args:
            touched: Finds the rows; called where some may be in other processes.
        """
        ...

    def stage(
        self, merged: Merged, table: Table, reshaped: StagedWrite | None = None
    ) -> StagedWrite:
        """Write the files of a table, and what is deleted in it.

        Args:
            reshaped: The transaction that gives the table the columns of the rows, planned for
                changes of rows; what is staged does both. None if the table has them.
        """
        ...

    def close(self) -> None:
        """Release what the engine holds for the merge."""
        ...


class RowMerger(ColumnFiller, Engine, Protocol):
    """What an engine does for merges."""

    def begin_merge(
        self, commit_id: CommitId, data: Data, resolutions: Resolutions, *, strict_rows: bool
    ) -> MergeRows:
        """A merge of which nothing has been decided.

        Args:
            commit_id: The commit that is merged.
            data: The target.
            resolutions: The decisions of the caller; those that are used are noted there.
            strict_rows: Whether rows that both sides changed conflict even in different properties.
        """
        ...


@dataclass(slots=True)
class LocalRows:
    """The rows of a merge in this process: all that differs."""

    engine: Engine
    data: Data
    resolutions: Resolutions
    strict_rows: bool
    conflicts: list[Conflict] = field(default_factory=list)

    @property
    def conflict_count(self) -> int:
        """How many conflicts about rows there are."""
        return len(self.conflicts)

    @property
    def conflicts_max(self) -> int | None:
        """All of them are named."""
        return None

    def decide(self, sides: Sides) -> Merged | None:
        """Decide about a table; None if the merge does nothing to it."""
        merged = self._merge_table(sides)
        if merged is not None:
            self.conflicts += merged.conflicts
        return merged

    def counts(self, merged: Merged) -> Counts:
        """What the merge does to a table, in numbers."""
        return merged.counts

    def survivors(self, merged: Merged) -> Survivors:
        """The rows of a table that the merge keeps although one side deleted them."""
        return merged.survivors

    def delta(self, tables: Mapping[TableKey, Merged]) -> Delta:
        """All that the merge changes, for the rules to look at."""
        return Delta({key: delta_of(merged) for key, merged in tables.items() if merged.counts})

    def bring(
        self,
        tables: dict[TableKey, Merged],
        touched: Callable[[], TouchedRows],  # noqa: ARG002  # they are here
    ) -> dict[TableKey, Merged]:
        """The merge as it is: all of its rows are in this process."""
        return tables

    def stage(
        self, merged: Merged, table: Table, reshaped: StagedWrite | None = None
    ) -> StagedWrite:
        """Write the files of a table, and what is deleted in it."""
        wide, schema = merged.wide, table_schema(merged.type)
        inserted, updated = wide.in_order(merged.added), wide.in_order(merged.replaced)
        complete = partial(wide.complete, schema) if merged.is_referring else None
        deleted = merged.deleted
        if reshaped is None:
            return stage_rows(
                table, inserted=inserted, updated=updated, deleted=deleted, complete=complete
            )
        shown = heads.preview(reshaped)
        files, doomed = write_rows(
            shown, inserted=inserted, updated=updated, deleted=deleted, complete=complete
        )
        return stage_reshaped_rows(reshaped, files=files, deletions=delete_rows(shown, doomed))

    def close(self) -> None:
        """Nothing is held."""

    def _merge_table(self, sides: Sides) -> Merged | None:
        compare = partial(self._compare, sides, sides.wide_values())
        if sides.base.commit is None:
            return self._merge_virtual(sides, compare)
        base = sides.base.commit
        if sides.is_target_base:
            adopted = self._restore(sides, sides.theirs, compare(base, sides.theirs))
            return adopt(adopted) if adopted.counts else None
        with ThreadPoolExecutor(max_workers=1) as beside:
            comparing = beside.submit(compare, base, sides.ours)
            their_changes = compare(base, sides.theirs)
        return self._merge_changes(sides, comparing.result(), their_changes)

    def _merge_virtual(
        self, sides: Sides, compare: Callable[[CommitId, CommitId], TableChanges]
    ) -> Merged | None:
        """Merge a table of which the commits of a virtual base have several versions."""
        nothing = reference_schema(table_schema(sides.type)).empty_table()
        wide = sides.wide_values()
        folds = TableFolds(sides.type, compare, self.engine, self.data, nothing, wide)
        base = folds.fold(sides.base)
        ours, theirs = base.changes_to(sides.ours), base.changes_to(sides.theirs)
        return self._merge_changes(sides, ours, theirs, base.unsettled)

    def _merge_changes(
        self,
        sides: Sides,
        ours: TableChanges,
        theirs: TableChanges,
        unsettled: Unsettled | None = None,
    ) -> Merged | None:
        our_changes = self._restore(sides, sides.ours, ours)
        their_changes = self._restore(sides, sides.theirs, theirs)
        is_restored = bool(sides.dropped.get(sides.ours)) and ours.after.num_rows > 0
        if not their_changes.counts and unsettled is None and not is_restored:
            return None
        merged = self._decider.merge(our_changes, their_changes, unsettled)
        if not is_restored:
            return merged
        # The target's table has not even the column, so that all of its values are written again.
        restored = _with_columns(ours.after, ours.before, sides.dropped[sides.ours])
        written = pa.concat_arrays([ids_of(merged.replaced), merged.deleted])
        others = exclude_ids(restored, written)
        return replace(merged, replaced=pa.concat_tables([merged.replaced, others]))

    def _restore(self, sides: Sides, commit: CommitId, changes: TableChanges) -> TableChanges:
        """The changes of a side, with the values of the base where it has dropped a column.

        It was decided that the merged schema has the column: as if the side had not dropped it.
        """
        names = sides.dropped.get(commit, ())
        if not names or not changes.after.num_rows:
            return changes
        after = _with_columns(changes.after, changes.before, names)
        updated = compare_rows(sides.type, changes.before, after, self.engine, self.data)
        return replace(changes, before=updated.before, after=updated.after)

    def _compare(
        self, sides: Sides, wide: WideValues, before: CommitId, after: CommitId
    ) -> TableChanges:
        tables, lifts = sides.tables, sides.lift_pair(before, after)
        return compare_tables(
            sides.type, tables[before], tables[after], self.engine, self.data, wide, lifts
        )

    @property
    def _decider(self) -> ThreeWay:
        return ThreeWay(self.engine, self.data, self.resolutions, self.strict_rows)


def _with_columns(rows: pa.Table, others: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows with some columns of other rows, which are in the same order."""
    for name in names:
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), others[name])
    return rows


def delta_of(merged: Merged) -> TableDelta:
    """What a merge changes in a table, for the rules to look at."""
    schema = delta_schema(merged.type)
    rows = pa.concat_tables([merged.replaced, merged.added])
    nowhere = pa.nulls(rows.num_rows, pa.int64())
    columns = {
        own.name: nowhere if own.name == POSITION else _to_rule_column(rows[own.name], own.type)
        for own in schema
    }
    return TableDelta(pa.table(columns), merged.deleted)


def _to_rule_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """What rules look at: of vectors and blobs that others have, whether they are there."""
    return column if is_reference(column.type) else column.cast(kind)
