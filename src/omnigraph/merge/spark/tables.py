"""A merge whose rows are on Spark, and the few of them in this process that decisions touch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Final, Self

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from omnigraph.changes.spark.rows import ChangedRows, Versions
from omnigraph.engine.protocol import Engine
from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.engine.spark.jobs import Answer, Jobs
from omnigraph.engine.spark.messages import MESSAGE, collect_messages
from omnigraph.engine.spark.pieces import PART, PIECES, ROWS, opened, sent
from omnigraph.engine.spark.relations import given_frame
from omnigraph.engine.spark.writing import cut_deletions, delete_groups, fragment_groups
from omnigraph.errors import LimitExceededError
from omnigraph.integrity.deltas import Delta, TableDelta
from omnigraph.limits import MERGE_CONFLICTS_MAX, MERGE_DECISIONS_MAX
from omnigraph.merge.bases import Base
from omnigraph.merge.conflicts import Conflict
from omnigraph.merge.decisions import Merged
from omnigraph.merge.resolutions import Resolutions
from omnigraph.merge.rules import Touched, delta_of
from omnigraph.merge.spark.decisions import PLACES, DecideTask, Part, Told, decide_bucket
from omnigraph.merge.spark.sources import Copied, Decided, RowSource, Wanted
from omnigraph.model.counts import Counts
from omnigraph.model.ids import CommitId
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.pairs import files_of, places_by_files
from omnigraph.storage.staging import Deletions, Staged, combine_deletions, stage_change, write_rows
from omnigraph.storage.tables import ROW_ADDRESS, Table

_ACTION: Final = "the merge"


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

    def pairs(self) -> tuple[tuple[CommitId, CommitId], ...]:
        """The commits that are compared: theirs and ours with the anchor, then those of folds."""
        anchor = self.base.anchor
        sides = [(anchor, self.theirs)]
        if not self.is_target_base:
            sides.append((anchor, self.ours))
        return tuple(dict.fromkeys((*sides, *self.base.pairs())))

    def versions(self) -> list[Versions]:
        """What is unequal between those."""
        return [Versions.of(self.tables[old], self.tables[new]) for old, new in self.pairs()]


@dataclass(slots=True)
class SparkRows:
    """The rows of a merge on Spark, table by table; what `merge.rules` takes for the rest.

    Attributes:
        brought: By table, the ids of rows that are in this process now, and what they were there.
    """

    engine: SparkEngine
    name: str
    sources: dict[TableKey, RowSource] = field(default_factory=dict)
    brought: dict[TableKey, tuple[pa.Array, Counts]] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    conflict_count: int = 0
    _kept: list[DataFrame] = field(default_factory=list)

    @classmethod
    def begin(cls, engine: Engine, merged_commit: str) -> Self:
        """A merge of which nothing has been decided."""
        assert isinstance(engine, SparkEngine), "the caller chose by its name"
        return cls(engine, f"omnigraph-merge-{merged_commit}")

    def decide(self, sides: Sides, resolutions: Resolutions, *, strict_rows: bool) -> bool:
        """Have executors decide about a table; whether the merge does anything to it.

        Raises:
            InvalidInputError: a resolution gives a value that does not fit.
            StorageError: a table could not be read.
        """
        versions = sides.versions()
        if sides.is_target_base and versions[0].only_adds:
            source: RowSource = self._copied(sides, versions[0])
        else:
            source = self._decided(sides, versions, resolutions, strict_rows=strict_rows)
        if source.counts:
            self.sources[sides.type.table_key] = source
        return bool(source.counts)

    def close(self) -> None:
        """Let Spark forget the rows."""
        for each in self._kept:
            each.unpersist()

    def counts(self, here: Merged) -> Counts:
        """What the merge does to a table, in numbers."""
        source = self.sources.get(here.type.table_key)
        if source is None:
            return here.counts
        return source.counts - self._brought(here.type.table_key)[1] + here.counts

    def delta(self, tables: Mapping[TableKey, Merged]) -> Delta:
        """All that the merge brings: what is here, and the rest."""
        return Delta({key: self._delta(each) for key, each in tables.items() if self.counts(each)})

    def bring(self, tables: dict[TableKey, Merged], touched: Touched) -> dict[TableKey, Merged]:
        """The merge with these rows here, too.

        Raises:
            LimitExceededError: they are more than this process may hold.
        """
        for key in touched.ids.keys() | touched.sources.keys():
            source = self.sources.get(key)
            if source is None:
                continue
            before, counts = self._brought(key)
            ids = touched.ids.get(key, set()) - set(before.to_pylist())
            nodes = touched.sources.get(key, set())
            wanted = Wanted(pa.array(sorted(ids), pa.utf8()), pa.array(sorted(nodes), pa.utf8()))
            found = self._run(partial(source.find, wanted)).leaving_out(before)
            new = pa.concat_arrays([rows["id"].combine_chunks() for rows in _rows(found)])
            self.brought[key] = (pa.concat_arrays([before, new]), counts + found.counts)
            tables = tables | {key: _joined(tables[key], found)}
            if len(before) + len(new) > MERGE_DECISIONS_MAX:
                message = (
                    f"decisions about rules touch more than {MERGE_DECISIONS_MAX:,} rows of "
                    f"{key.type_name}"
                )
                raise LimitExceededError(message, hint="change a branch so that fewer are needed")
        return tables

    def stage(self, here: Merged, table: Table) -> Staged:
        """Have executors write the table's files and deletions, and assemble them."""
        source = self.sources.get(here.type.table_key)
        without = self._brought(here.type.table_key)[0]
        files, gone = write_rows(
            table, added=here.added, replaced=here.replaced, deleted=here.deleted
        )
        written = [] if source is None else self._run(partial(source.write, table, without))
        groups = fragment_groups(table)
        pieces = [] if source is None else [source.deletions(groups, without)]
        if len(gone):
            pieces.append(self._pieces(cut_deletions(pa.table({ROW_ADDRESS: gone}), groups)))
        deletions = self._deleted(table, [each for each in pieces if each is not None])
        return stage_change(table, files=[*files, *written], deletions=deletions)

    def _copied(self, sides: Sides, theirs: Versions) -> Copied:
        fragments = [each.after for each in theirs.pairs if each.after is not None]
        return Copied.of(self._session, sides.type, sides.tables[sides.theirs], fragments)

    def _decided(
        self,
        sides: Sides,
        versions: Sequence[Versions],
        resolutions: Resolutions,
        *,
        strict_rows: bool,
    ) -> Decided:
        changed = ChangedRows.of(sides.type, versions, PLACES)
        anchor, target = sides.tables[sides.base.anchor], sides.tables[sides.ours]
        task = DecideTask(
            sides.type,
            sides.is_target_base,
            resolutions,
            strict_rows,
            target_fragments=dict(_same_fragments(anchor, target)),
            base=sides.base,
            theirs=sides.theirs,
            ours=sides.ours,
            pairs=sides.pairs(),
        )
        decide = partial(decide_bucket, task)
        frame = changed.by_id(self._session).mapInArrow(decide, PIECES)
        # Kept for rules and for writing: deciding reads and shuffles all that differs.
        frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(frame)
        found = self._run(partial(_told, self._session, sides.type, frame))
        for each in found.told:
            resolutions.used |= each.used
        self.conflict_count += found.conflict_count
        self.conflicts += self._run(partial(found.conflicts, MERGE_CONFLICTS_MAX))
        return found

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
        every = sent(reduce(DataFrame.union, pieces), len(groups))
        delete = partial(delete_groups, table.address)
        told = self._run(lambda: collect_messages(every.mapInArrow(delete, MESSAGE)))
        return combine_deletions(told)

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


def _told(session: SparkSession, type_: SchemaType, frame: DataFrame) -> Decided:
    """The decisions, once all were made; the driver hears of them in numbers."""
    told: list[Told] = []
    rows = frame.where(frame[PART] == int(Part.TOLD))
    for batch in rows.select(PART, ROWS).toArrow().to_batches():
        for _, some in opened([batch]):
            told += map(Told.of, some["told"].to_pylist())
    return Decided(session, type_, frame, tuple(told))


def _same_fragments(base: Table, target: Table) -> Iterator[tuple[int, int]]:
    """The ids of fragments that both have, in the one and in the other."""
    places, fragments = places_by_files(target), target.fragments()
    for each in base.fragments():
        place = places.get(files_of(each))
        if place is not None:
            yield each.id, fragments[place].id


def _rows(merged: Merged) -> tuple[pa.Table, ...]:
    return merged.added, merged.replaced, pa.table({"id": merged.deleted})


def _joined(here: Merged, found: Merged) -> Merged:
    return replace(
        here,
        added=pa.concat_tables([here.added, found.added]),
        replaced=pa.concat_tables([here.replaced, found.replaced]),
        deleted=pa.concat_arrays([here.deleted, found.deleted]),
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
        found = self.source.upserts(columns, self.without)
        own = self.here.upserts
        if own is None or not len(own):
            return found
        return found.union(given_frame(self.session, own.select(list(columns))))


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
        found = self.source.deleted(self.without)
        own = self.here.deleted_ids()
        return found.union(given_frame(self.session, own)) if len(own) else found
