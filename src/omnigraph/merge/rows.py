"""The rows of a merge: the versions that meet in a table, and what an engine does with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import pyarrow as pa

from omnigraph.changes.records import TableChanges
from omnigraph.changes.tables import compare_tables
from omnigraph.changes.wide import WideValues, is_reference, reference_schema
from omnigraph.engine.protocol import Data, Engine
from omnigraph.integrity.deltas import POSITION, Delta, TableDelta, delta_schema
from omnigraph.merge.bases import Base
from omnigraph.merge.conflicts import Conflict
from omnigraph.merge.decisions import Merged, ThreeWay, adopt
from omnigraph.merge.resolutions import Resolutions
from omnigraph.merge.virtual import TableFolds
from omnigraph.model.counts import Counts
from omnigraph.model.ids import CommitId
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.staging import StagedWrite, stage_rows
from omnigraph.storage.tables import Table


@dataclass(frozen=True, slots=True)
class Sides:
    """The versions of one table that meet in a merge.

    Attributes:
        base: What both sides come from.
        tables: By commit, the table: those of the base, theirs and ours.
        is_target_base: Whether the target has the table as the base, a commit, has it.
    """

    type: SchemaType
    base: Base
    tables: Mapping[CommitId, Table]
    theirs: CommitId
    ours: CommitId
    is_target_base: bool


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
        """What nobody decided about rows, as far as it is named."""
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
        """Decide about a table; None if the merge does nothing to it.

        Raises:
            InvalidInputError: a resolution gives a value that does not fit.
            StorageError: a table could not be read.
        """
        ...

    def counts(self, merged: Merged) -> Counts:
        """What the merge does to a table, in numbers."""
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

        Raises:
            LimitExceededError: they are more than this process may hold.
        """
        ...

    def stage(self, merged: Merged, table: Table) -> StagedWrite:
        """Write the files of a table, and what is deleted in it."""
        ...

    def close(self) -> None:
        """Release what the engine holds for the merge."""
        ...


class RowMerger(Engine, Protocol):
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
        """Decide about a table; None if the merge does nothing to it.

        Raises:
            InvalidInputError: a resolution gives a value that does not fit.
            StorageError: a table could not be read.
        """
        merged = self._merge_table(sides)
        if merged is not None:
            self.conflicts += merged.conflicts
        return merged

    def counts(self, merged: Merged) -> Counts:
        """What the merge does to a table, in numbers."""
        return merged.counts

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

    def stage(self, merged: Merged, table: Table) -> StagedWrite:
        """Write the files of a table, and what is deleted in it."""
        wide, schema = merged.wide, table_schema(merged.type)
        return stage_rows(
            table,
            inserted=wide.in_order(merged.added),
            updated=wide.in_order(merged.replaced),
            deleted=merged.deleted,
            complete=partial(wide.complete, schema) if merged.is_referring else None,
        )

    def close(self) -> None:
        """Nothing is held."""

    def _merge_table(self, sides: Sides) -> Merged | None:
        if sides.base.commit is None:
            return self._merge_virtual(sides)
        before, ours, theirs = (
            sides.tables[commit] for commit in (sides.base.commit, sides.ours, sides.theirs)
        )
        wide = WideValues(before, ours, theirs)
        compare = partial(self._compare, sides.type, before, wide=wide)
        if sides.is_target_base:
            adopted = compare(theirs)
            return adopt(adopted) if adopted.counts else None
        with ThreadPoolExecutor(max_workers=1) as beside:
            comparing = beside.submit(compare, ours)
            their_changes = compare(theirs)
        our_changes = comparing.result()
        if not their_changes.counts:
            return None
        return self._decider.merge(our_changes, their_changes)

    def _merge_virtual(self, sides: Sides) -> Merged:
        """Merge a table of which the commits of a virtual base have several versions."""
        tables = sides.tables
        wide = WideValues(*tables.values())

        def compare(before: CommitId, after: CommitId) -> TableChanges:
            return self._compare(sides.type, tables[before], tables[after], wide=wide)

        nothing = reference_schema(table_schema(sides.type)).empty_table()
        folds = TableFolds(sides.type, compare, self.engine, self.data, nothing, wide)
        base = folds.fold(sides.base)
        ours, theirs = base.changes_to(sides.ours), base.changes_to(sides.theirs)
        return self._decider.merge(ours, theirs, base.unsettled)

    def _compare(
        self, type_: SchemaType, before: Table, after: Table, *, wide: WideValues
    ) -> TableChanges:
        return compare_tables(type_, before, after, self.engine, self.data, wide)

    @property
    def _decider(self) -> ThreeWay:
        return ThreeWay(self.engine, self.data, self.resolutions, self.strict_rows)


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
