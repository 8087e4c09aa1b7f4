"""The source behind `spark.readStream.format("omnigraph")`: the changes of a branch.

Offsets are commits. The driver walks from the branch's newest commit back to the last one that was
read, and executors compare each commit with the one before it. Commits that change no row, of
maintenance and recoveries, are never an offset, so that they make no batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import (
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from omnigraph.backends.registry import Backends
from omnigraph.changes.diffs import CommitChanges
from omnigraph.changes.feed import Feed, commits_after, gap_error
from omnigraph.changes.graphs import Filter, Side, moved_pins
from omnigraph.changes.lifts import Lift, unlike_columns
from omnigraph.changes.rows import Changes
from omnigraph.engine.snapshots import data_at
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.types import crossing_schema, spark_schema, to_crossing
from omnigraph.errors import CommitNotFoundError, ErrorCode, InvalidInputError
from omnigraph.formats.lines import envelope_lines
from omnigraph.limits import ROWS_PER_BATCH_MAX
from omnigraph.manifest import lineage
from omnigraph.manifest.points import Points
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.removals import detect_removal
from omnigraph.manifest.schemas import Catalogs
from omnigraph.model.commits import Commit
from omnigraph.model.identities import TypeIdentity
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.schema.arrow import table_schema
from omnigraph.storage.store import Store
from omnigraph.streams.options import FeedOptions, FeedType

_NOW: Final = "now"
_COMMIT: Final = "commit"
_HEAD: Final = (
    StructField(_COMMIT, StringType(), nullable=False),
    StructField("version", LongType(), nullable=False),
    StructField("created_at", TimestampType(), nullable=False),
    StructField("type", StringType(), nullable=False),
    StructField("op", StringType(), nullable=False),
    StructField("id", StringType(), nullable=False),
)
"""What every change has: its commit, the version of the branch's manifest, which grows from commit
to commit, and when that was; then the row's type, what happened to it, and its id."""

Offset = dict[str, str]


def feed_schema(options: FeedOptions) -> StructType:
    """The columns of changes: rows before and after, as the type's columns, or as envelopes."""
    row = StringType() if options.only is None else _row_type(options.only)
    images = [StructField(name, row, nullable=True) for name in ("before", "after")]
    return StructType([*_HEAD, *images])


def _row_type(only: FeedType) -> StructType:
    fields = spark_schema(table_schema(only.type))
    return StructType([StructField(each.name, each.dataType, nullable=True) for each in fields])


@dataclass(frozen=True, slots=True)
class CommitPair:
    """A commit, and the one before it."""

    before: Commit
    after: Commit


class CommitGroup(InputPartition):
    """Commits that one task reads."""

    def __init__(self, pairs: tuple[CommitPair, ...]) -> None:
        super().__init__(pairs)


class FeedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the changes of a branch. Only offsets are kept in the driver."""

    def __init__(self, options: FeedOptions) -> None:
        self._options = options
        self._target: CommitId | None = None

    def initialOffset(self) -> Offset:
        """The commit after which a new stream starts."""
        after = self._options.after
        if after is None:
            return {_COMMIT: ""}
        if after == _NOW:
            return {_COMMIT: self._newest()}
        manifest, branch = _manifest(self._options.graph), self._options.branch
        authority = self._options.access.authority(self._options.graph)
        # As for `graph.changes`: a tag of a hidden branch does not exist.
        with authority.conceal(after):
            place = Points(manifest).locate(after, near=branch)
            if not authority.visible([place.near]):
                manifest.history(manifest.current(branch)).find(place.commit_id)
            # Maintenance has the rows of the commit before it, and is no offset.
            return {_COMMIT: manifest.find(place.commit_id, near=place.near).rows_from}

    def getDefaultReadLimit(self) -> ReadLimit:
        """As many commits as the option says; they are Spark's files here."""
        most = self._options.commits_max
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> Offset:
        """The newest commit, or the last of as many as may be read."""
        newest = self._target or self._newest()
        if not isinstance(limit, ReadMaxFiles) or start[_COMMIT] == newest:
            return {_COMMIT: newest}
        commits, _ = self._between(start, newest)
        newer = [commit for commit in commits if commit.rows_from == commit.commit_id]
        return {_COMMIT: newer[: limit.max_files][-1].commit_id if newer else newest}

    def prepareForTriggerAvailableNow(self) -> None:
        """Let the stream end with the commit that is the newest now."""
        self._target = self._newest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The commits between two offsets, in groups that follow one another. Reads no rows."""
        pairs = tuple(self._pairs(start, CommitId(end[_COMMIT])))
        self._admit(pairs)
        size = max(1, -(-len(pairs) // self._options.parallelism))
        groups = [pairs[first : first + size] for first in range(0, len(pairs), size)]
        # Without any group, Spark would make one partition of its own, without a value.
        return [CommitGroup(group) for group in groups or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Compare the commits of a group. Runs in an executor; safe to run twice."""
        with report_errors():
            reader = _ChangeReader(self._options)
            for pair in partition.value:
                yield from reader.read(pair)

    def _newest(self) -> CommitId:
        return _manifest(self._options.graph).current(self._options.branch).head.rows_from

    def _pairs(self, start: dict[str, Any], end: CommitId) -> Iterator[CommitPair]:
        commits, before = self._between(start, end)
        for commit in commits:
            if before is not None and not commit.is_maintenance:
                yield CommitPair(before, commit)
            before = commit

    def _admit(self, pairs: Iterable[CommitPair]) -> None:
        """Refuse commits that the policy keeps from the reader; executors do not have the policy.

        As for `graph.changes`, a commit is read whole: no change is left out silently.
        """
        authority = self._options.access.authority(self._options.graph)
        if not authority.is_limited:
            return
        manifest, wanted = _manifest(self._options.graph), _wanted(self._options)
        for pair in pairs:
            sides = manifest.at(pair.before), manifest.at(pair.after)
            for pins in moved_pins(*sides, wanted):
                for snapshot, pin in zip(sides, pins, strict=True):
                    authority.require_readable(snapshot, [pin.key] if pin else [])

    def _between(self, start: dict[str, Any], end: CommitId) -> tuple[list[Commit], Commit | None]:
        """The commits after the start, up to the end, oldest first, and the one before them."""
        after = CommitId(start[_COMMIT]) if start[_COMMIT] else None
        if after == end:
            return [], None
        branch, manifest = self._options.branch, _manifest(self._options.graph)
        now = manifest.current(branch)
        history = manifest.history(now)
        newer = commits_after(
            after, lineage.first_parents(now.head.commit_id, history.find), branch
        )
        upto = list(dropwhile(lambda commit: commit.commit_id != end, newer))
        if not upto:
            message = f"commit {end} does not follow {after} in the history of branch {branch}"
            raise gap_error(message)
        parent = upto[-1].parent
        return upto[::-1], None if parent is None else history.find(parent)


class _ChangeReader:
    """Reads the changes of single commits, in an executor."""

    def __init__(self, options: FeedOptions) -> None:
        self._options = options
        self._manifest = _manifest(options.graph)
        self._catalogs = Catalogs(self._manifest.store.objects)
        self._feed = Feed(self._manifest, Backends().local, self._side, self._catalogs.of)
        self._schema = _arrow_schema(options)
        self._wanted = _wanted(options)

    def read(self, pair: CommitPair) -> Iterator[pa.RecordBatch]:
        """The changes of a commit, in batches."""
        with detect_removal(self._manifest.store):
            changes = self._feed.changes(pair.after, _finder(pair.before), self._wanted)
            for table in changes.diff.tables:
                yield from self._batches(pair, changes, table)

    def _side(self, commit: Commit, _: BranchName) -> Side:
        snapshot = self._manifest.at(commit)
        return Side(snapshot, data_at(self._manifest.store, snapshot))

    def _batches(
        self, pair: CommitPair, changes: CommitChanges, table: Changes
    ) -> Iterator[pa.RecordBatch]:
        image = self._imager(pair, table)
        for chunk in table.chunks(changes.diff.ops):
            rows = chunk.before if chunk.after is None else chunk.after
            assert rows is not None, "a change has rows before it or after it"
            for start in range(0, rows.num_rows, ROWS_PER_BATCH_MAX):
                ids = rows["id"].slice(start, ROWS_PER_BATCH_MAX).combine_chunks()
                images = [
                    pa.nulls(len(ids), self._schema.field(name).type)
                    if side is None
                    else image(side.slice(start, ROWS_PER_BATCH_MAX))
                    for name, side in (("before", chunk.before), ("after", chunk.after))
                ]
                commit = pair.after
                head = (commit.commit_id, commit.manifest_version, commit.created_at)
                values = (*head, table.type.name, str(chunk.op))
                constants = [
                    pa.repeat(pa.scalar(value, field.type), len(ids))
                    for value, field in zip(values, self._schema, strict=False)
                ]
                columns = [*constants, ids.cast(pa.utf8()), *images]
                yield pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _imager(self, pair: CommitPair, table: Changes) -> Any:
        """How rows of a type become values of the columns `before` and `after`."""
        only = self._options.only
        if only is None:
            return lambda rows: _to_envelopes(table, rows)
        identity = self._identity(pair, table)
        lift = Lift.between(table.type, identity, wanted=only.type, wanted_identity=only.identity)
        kind = self._schema.field("after").type
        return lambda rows: _to_struct(lift, rows, kind)

    def _identity(self, pair: CommitPair, table: Changes) -> TypeIdentity:
        """The identity of the type of some changes, which a commit may have dropped."""
        key = table.type.table_key
        for commit in (pair.after, pair.before):
            if (pin := self._manifest.at(commit).pins.get(key)) is not None:
                return pin.identity
        message = f"neither side of commit {pair.after.commit_id} has {key}"
        raise AssertionError(message)


def _wanted(options: FeedOptions) -> Filter:
    only, origins = options.only, None
    if only is not None:
        origins = frozenset([(only.type.table_key.kind, only.identity.origin)])
    return Filter(origins=origins, ops=options.ops)


def _arrow_schema(options: FeedOptions) -> pa.Schema:
    row = pa.utf8()
    if options.only is not None:
        crossing = crossing_schema(table_schema(options.only.type))
        row = pa.struct([pa.field(each.name, each.type, nullable=True) for each in crossing])
    head: Mapping[str, pa.DataType] = {
        "version": pa.int64(),
        "created_at": pa.timestamp("us", tz="UTC"),
    }
    return pa.schema(
        [
            *(
                pa.field(each.name, head.get(each.name, pa.utf8()), nullable=False)
                for each in _HEAD
            ),
            *(pa.field(name, row) for name in ("before", "after")),
        ]
    )


def _to_envelopes(table: Changes, rows: pa.Table) -> pa.Array:
    """Each row as a line of a graph file, without its newline."""
    lines = [
        line.decode()
        for batch in rows.combine_chunks().to_batches()
        for line in envelope_lines(table.type, batch).to_pybytes().splitlines()
    ]
    return pa.array(lines, pa.utf8())


def _to_struct(lift: Lift, rows: pa.Table, kind: pa.StructType) -> pa.Array:
    """Each row as one of the type that the stream started with."""
    lifted = lift.apply(rows, table_schema(lift.type).names)
    for name in unlike_columns(lifted):
        if lifted[name].null_count < len(lifted):
            message = f"{lift.type.name} has values by now that its columns in this stream lack"
            hint = "the schema changed: start the stream again, which then has its new columns"
            raise InvalidInputError(message, hint=hint, code=ErrorCode.SCHEMA_CHANGED)
    own = lifted.select(table_schema(lift.type).names).combine_chunks()
    [batch] = own.to_batches()
    crossed = to_crossing(batch)
    fields = [kind.field(place) for place in range(kind.num_fields)]
    return pa.StructArray.from_arrays(crossed.columns, fields=fields)


def _finder(before: Commit) -> lineage.Lookup:
    def find(commit_id: CommitId) -> Commit:
        if commit_id != before.commit_id:
            message = f"commit {commit_id} was not sent to this task"
            raise CommitNotFoundError(message)
        return before

    return find


@lru_cache(maxsize=8)
def _manifest(uri: str) -> Manifest:
    """The manifest of a graph, with what this process has read of it."""
    return Manifest(Store.open(uri))
