"""A merge whose rows are on Spark, and the few of them in this process that decisions touch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Final, Self, TypeAlias

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from omnigraph.changes.spark.rows import ChangedRows, Versions
from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.engine.spark.jobs import Answer, Jobs
from omnigraph.engine.spark.messages import MESSAGE, collect_messages
from omnigraph.engine.spark.pieces import PART, PIECES, ROWS, open_pieces, route_pieces
from omnigraph.engine.spark.relations import given_frame
from omnigraph.engine.spark.writing import cut_deletions, delete_groups, fragment_groups
from omnigraph.errors import InvalidInputError, LimitExceededError
from omnigraph.integrity.deltas import Delta, TableDelta
from omnigraph.limits import MERGE_DECISIONS_MAX
from omnigraph.merge.conflicts import Conflict
from omnigraph.merge.decisions import Merged, Survivors
from omnigraph.merge.lost_values import partial_conversions
from omnigraph.merge.resolutions import Resolutions
from omnigraph.merge.rows import Sides, TouchedRows, delta_of
from omnigraph.merge.spark.decisions import (
    PLACES,
    REPORT,
    DecideTask,
    DecisionReport,
    Part,
    TargetPlaces,
    decide_bucket,
)
from omnigraph.merge.spark.sources import CopiedRows, DecidedRows, RowSource, WantedRows
from omnigraph.model.counts import Counts
from omnigraph.model.ids import CommitId
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage import heads
from omnigraph.storage.pairs import files_of, find_common_version
from omnigraph.storage.reshape import stage_reshaped_rows
from omnigraph.storage.staging import (
    Deletions,
    StagedWrite,
    combine_deletions,
    stage_change,
    write_rows,
)
from omnigraph.storage.tables import ROW_ADDRESS, Table

MERGE_CONFLICTS_MAX: Final = 5_000
"""Conflicts that a merge on Spark lists; all are counted."""


_ACTION: Final = "the merge"

Pairs: TypeAlias = tuple[tuple[CommitId, CommitId], ...]
"""Commits that are compared with each other."""


@dataclass(slots=True)
class SparkRows:
    """The rows of a merge on Spark, table by table.

    Attributes:
        name: Names the jobs of the merge.
        resolutions: The decisions of the caller; those that are used are noted there.
        brought: By table, the ids of rows that are in this process now, and what they were there.
    """

    engine: SparkEngine
    name: str
    resolutions: Resolutions
    strict_rows: bool
    sources: dict[TableKey, RowSource] = field(default_factory=dict)
    brought: dict[TableKey, tuple[pa.Array, Counts]] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    conflict_count: int = 0
    _kept: list[DataFrame] = field(default_factory=list)

    @classmethod
    def begin(
        cls,
        engine: SparkEngine,
        commit_id: CommitId,
        resolutions: Resolutions,
        *,
        strict_rows: bool,
    ) -> Self:
        """A merge of this commit, of which nothing has been decided."""
        return cls(engine, f"omnigraph-merge-{commit_id}", resolutions, strict_rows)

    @property
    def conflicts_max(self) -> int | None:
        """How many conflicts are named: on Spark, there may be any number of them."""
        return MERGE_CONFLICTS_MAX

    def decide(self, sides: Sides) -> Merged | None:
        """Have executors decide about a table; None if the merge does nothing to it."""
        _require_mergeable(sides)
        pairs = _compared_pairs(sides)
        versions = [
            Versions.of(sides.tables[old], sides.tables[new], sides.lift_pair(old, new))
            for old, new in pairs
        ]
        is_copied = sides.is_target_base and sides.lift(sides.theirs).is_identity
        if is_copied and versions[0].only_adds:
            source: RowSource = self._copied(sides, versions[0])
        else:
            source = self._decided(sides, pairs, versions)
        if not source.counts and not source.survivor_count:
            return None
        self.sources[sides.type.table_key] = source
        return Merged.nothing(sides.type)

    def close(self) -> None:
        """Release the rows that Spark keeps."""
        for frame in self._kept:
            frame.unpersist()

    def counts(self, here: Merged) -> Counts:
        """What the merge does to a table, in numbers."""
        source = self.sources.get(here.type.table_key)
        if source is None:
            return here.counts
        return source.counts - self._brought(here.type.table_key)[1] + here.counts

    def survivors(self, merged: Merged) -> Survivors:
        """The rows of a table that the merge keeps although one side deleted them."""
        source = self.sources.get(merged.type.table_key)
        return merged.survivors if source is None else self._run(source.survivors)

    def delta(self, tables: Mapping[TableKey, Merged]) -> Delta:
        """All that the merge changes, in this process and on Spark."""
        return Delta({key: self._delta(here) for key, here in tables.items() if self.counts(here)})

    def bring(
        self, tables: dict[TableKey, Merged], touched: Callable[[], TouchedRows]
    ) -> dict[TableKey, Merged]:
        """The merge with these rows in this process."""
        rows = touched()
        for key in rows.ids.keys() | rows.sources.keys():
            source = self.sources.get(key)
            if source is None:
                continue
            before, counts = self._brought(key)
            ids = rows.ids.get(key, set()) - set(before.to_pylist())
            nodes = rows.sources.get(key, set())
            wanted = WantedRows(*(pa.array(sorted(some), pa.utf8()) for some in (ids, nodes)))
            merged = self._run(partial(source.find, wanted)).leaving_out(before)
            new = pa.concat_arrays([table["id"].combine_chunks() for table in _tables(merged)])
            self.brought[key] = (pa.concat_arrays([before, new]), counts + merged.counts)
            tables = tables | {key: _join(tables[key], merged)}
            if len(before) + len(new) > MERGE_DECISIONS_MAX:
                message = (
                    f"decisions about rules touch more than {MERGE_DECISIONS_MAX:,} rows of "
                    f"{key.type_name}"
                )
                raise LimitExceededError(message, hint="change a branch so that fewer are needed")
        return tables

    def stage(
        self, merged: Merged, table: Table, reshaped: StagedWrite | None = None
    ) -> StagedWrite:
        """Have executors write the table's files and deletions, and assemble them."""
        here = merged
        source = self.sources.get(here.type.table_key)
        without = self._brought(here.type.table_key)[0]
        if reshaped is not None:
            table = heads.preview(reshaped)
        files, gone = write_rows(
            table, inserted=here.added, updated=here.replaced, deleted=here.deleted
        )
        written = [] if source is None else self._run(partial(source.write, table, without))
        groups = fragment_groups(table)
        pieces = [] if source is None else [source.deletions(groups, without)]
        if len(gone):
            pieces.append(self._pieces(cut_deletions(pa.table({ROW_ADDRESS: gone}), groups)))
        deletions = self._deleted(table, [frame for frame in pieces if frame is not None])
        every = [*files, *written]
        if reshaped is not None:
            return stage_reshaped_rows(reshaped, files=every, deletions=deletions)
        return stage_change(table, files=every, deletions=deletions)

    def _copied(self, sides: Sides, theirs: Versions) -> CopiedRows:
        table = sides.tables[sides.theirs]
        assert table is not None, "the rows are those of the source"
        return CopiedRows.of(self._session, sides.type, table, theirs.pairs)

    def _decided(self, sides: Sides, pairs: Pairs, versions: Sequence[Versions]) -> DecidedRows:
        changed = ChangedRows.of(sides.type, versions, PLACES)
        anchor, target = sides.tables[sides.base.anchor], sides.tables[sides.ours]
        task = DecideTask(
            sides.type,
            sides.is_target_base,
            self.resolutions,
            self.strict_rows,
            target=_target_places(anchor, target),
            base=sides.base,
            theirs=sides.theirs,
            ours=sides.ours,
            pairs=pairs,
        )
        decide = partial(decide_bucket, task)
        frame = changed.by_id(self._session).mapInArrow(decide, PIECES)
        # Kept for rules and for writing: deciding reads and shuffles all that differs.
        frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(frame)
        decided = self._run(partial(_collect_reports, self._session, sides.type, frame))
        for report in decided.reports:
            self.resolutions.used |= report.used
        self.conflict_count += decided.conflict_count
        self.conflicts += self._run(partial(decided.conflicts, MERGE_CONFLICTS_MAX))
        return decided

    def _delta(self, here: Merged) -> TableDelta:
        source = self.sources.get(here.type.table_key)
        own = delta_of(here)
        if source is None:
            return own
        without = self._brought(here.type.table_key)[0]
        counts = self.counts(here)
        return TableDelta(
            upserts=_Upserts(self._session, source, without, own, counts.inserted + counts.updated),
            deletions=_Deletions(self._session, source, without, own, counts.deleted),
        )

    def _deleted(self, table: Table, pieces: Sequence[DataFrame]) -> Deletions:
        if not pieces:
            return Deletions()
        groups = set(fragment_groups(table).values())
        every = route_pieces(reduce(DataFrame.union, pieces), len(groups))
        delete = partial(delete_groups, table.address)
        deletions = self._run(lambda: collect_messages(every.mapInArrow(delete, MESSAGE)))
        return combine_deletions(deletions)

    def _pieces(self, batches: Iterator[pa.RecordBatch]) -> DataFrame:
        rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
        return self._session.createDataFrame(rows, PIECES)

    def _brought(self, key: TableKey) -> tuple[pa.Array, Counts]:
        return self.brought.get(key, (pa.array([], pa.utf8()), Counts()))

    def _run(self, action: Callable[[], Answer]) -> Answer:
        return Jobs(self._session, self.name, _ACTION).run(action)

    @property
    def _session(self) -> SparkSession:
        return self.engine.session


def _compared_pairs(sides: Sides) -> Pairs:
    """The commits that are compared: theirs and ours with the anchor, then those of folds."""
    anchor = sides.base.anchor
    pairs = [(anchor, sides.theirs)]
    if not sides.is_target_base:
        pairs.append((anchor, sides.ours))
    return tuple(dict.fromkeys((*pairs, *sides.base.pairs())))


def _collect_reports(session: SparkSession, type_: SchemaType, frame: DataFrame) -> DecidedRows:
    """The decisions, once all were made; the driver gets numbers."""
    reports: list[DecisionReport] = []
    rows = frame.where(frame[PART] == int(Part.REPORT))
    for batch in rows.select(PART, ROWS).toArrow().to_batches():
        for _, some in open_pieces([batch]):
            reports += map(DecisionReport.of, some[REPORT].to_pylist())
    return DecidedRows(session, type_, frame, tuple(reports))


def _target_places(base: Table | None, target: Table | None) -> TargetPlaces:
    """Where the target has rows of the base.

    A schema change adds files to a fragment, and each file belongs to one fragment only. Rows of
    the other fragments may have been carried over to new ones.
    """
    if base is None or target is None:
        return TargetPlaces()
    owners = {file: fragment.id for fragment in target.fragments() for file in files_of(fragment)}
    same: dict[int, int] = {}
    for fragment in base.fragments():
        owner = next((owners[file] for file in files_of(fragment) if file in owners), None)
        if owner is not None:
            same[fragment.id] = owner
    if len(same) == len(base.fragments()):
        return TargetPlaces(same)
    owned = set(same.values())
    places = [at for at, fragment in enumerate(target.fragments()) if fragment.id not in owned]
    return TargetPlaces(same, target.address, tuple(places), find_common_version(base, target))


def _require_mergeable(sides: Sides) -> None:
    """Refuse what needs more than the rows of one id at a time."""
    commits = (sides.ours, sides.theirs)
    reason = None
    if any(partial_conversions(sides.lift(commit)) for commit in commits):
        reason = "values of one branch may not convert to the type that the other one declares"
    if any(sides.dropped.get(commit) for commit in commits):
        reason = "a property that one branch has dropped is kept"
    if reason is not None:
        message = f"the spark engine cannot merge {sides.type.name}: {reason}"
        raise InvalidInputError(message, hint="merge with --engine local, or change a branch")


def _tables(merged: Merged) -> tuple[pa.Table, ...]:
    return merged.added, merged.replaced, pa.table({"id": merged.deleted})


def _join(here: Merged, more: Merged) -> Merged:
    return replace(
        here,
        added=pa.concat_tables([here.added, more.added]),
        replaced=pa.concat_tables([here.replaced, more.replaced]),
        deleted=pa.concat_arrays([here.deleted, more.deleted]),
    )


@dataclass(frozen=True, slots=True)
class _Upserts:
    """What a delta has as its upserts: rows on Spark, and rows here."""

    session: SparkSession
    source: RowSource
    without: pa.Array
    here: TableDelta
    row_count: int

    def __len__(self) -> int:
        return self.row_count

    def select(self, columns: Sequence[str]) -> DataFrame:
        rows = self.source.upserts(columns, self.without)
        own = self.here.upserts
        if own is None or not len(own):
            return rows
        return rows.union(given_frame(self.session, own.select(list(columns))))


@dataclass(frozen=True, slots=True)
class _Deletions:
    """What a delta has as its deletions."""

    session: SparkSession
    source: RowSource
    without: pa.Array
    here: TableDelta
    row_count: int

    def __len__(self) -> int:
        return self.row_count

    def select(self, _columns: Sequence[str]) -> DataFrame:
        rows = self.source.deleted(self.without)
        own = self.here.deleted_ids()
        return rows.union(given_frame(self.session, own)) if len(own) else rows
