"""Proof by key counts: one Spark job counts every key that a load has, needs or meets.

Most loads keep every rule about keys. A job that groups equal keys proves which rules are kept, and
the engine looks for offenders of the others only. It is one job whatever the number of types, and
what it shuffles follows the keys of the load: committed keys that the load does not have, and
required ones that it has, are left out where they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import starmap
from typing import Final, Protocol, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from omnigraph.engine.local.buckets import buckets_of
from omnigraph.engine.protocol import Data
from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.pieces import (
    bucket_count,
    by_place,
    collect_parts,
    of_frame,
    route_pieces,
)
from omnigraph.engine.spark.sources import (
    HeldRows,
    LookupSource,
    ReadableRows,
    SourceRead,
    is_held_cheaply,
    of_sources,
    table_sources,
)
from omnigraph.integrity.cardinalities import CardinalityMax, CardinalityMin
from omnigraph.integrity.deltas import Shape
from omnigraph.integrity.ends import DanglingEdge, Endpoint
from omnigraph.integrity.keys import DistinctIds, NewIds
from omnigraph.integrity.proofs.key_facts import KEY, OWNER, KeyFacts, KeyKind, KeyRole, find_facts
from omnigraph.integrity.proofs.proof import Proof
from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import SetRule
from omnigraph.integrity.uniques import Unique
from omnigraph.limits import SPARK_BUCKET_ROWS_MAX, SPARK_PARTITION_ROWS_MIN
from omnigraph.model.tables import TableKey
from omnigraph.model.types import EnumType, PropertyType, Scalar
from omnigraph.schema.catalog import ENDPOINTS, SchemaType
from omnigraph.storage import lookups
from omnigraph.storage.tables import Table

_DISTINCT_AS_TEXT: Final = frozenset(
    {Scalar.STRING, Scalar.BOOL, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64, Scalar.DATE}
)
"""Types of which two values are equal exactly when their texts are."""

_NO_FACTS: Final = KeyFacts()


class LoadedRows(Protocol):
    """Rows that a load writes to one table, in files that executors read."""

    @property
    def type(self) -> SchemaType:
        """The type that the rows are of."""
        ...

    @property
    def has_given_ids(self) -> bool:
        """Whether any row has an id that was not minted, and so may not be distinct."""
        ...

    def __len__(self) -> int: ...

    def sources(self) -> Sequence[ReadableRows] | None:
        """The files; None if they also have rows that are not written."""
        ...

    def select(self, columns: Sequence[str]) -> DataFrame:
        """Columns of the rows."""
        ...


def by_key_counts(
    engine: SparkEngine,
    rules: Iterable[SetRule],
    shape: Shape,
    rows: Mapping[TableKey, LoadedRows],
    data: Data,
) -> Proof:
    """Prove rules about keys, by one job for all of them.

    Args:
        rules: The rules that the proof will be used for.
        rows: The rows of the load, by table.
    """
    counts = _KeyCounts(engine, shape, rows, data)
    countable = {rule for rule in rules if counts.add(rule)}
    facts = counts.run() if countable else {}

    def is_proven(rule: RowRules | SetRule) -> bool:
        if isinstance(rule, RowRules) or rule not in countable:
            return False
        return _is_kept(rule, facts.get(_space_of(rule), _NO_FACTS))

    return is_proven


def _is_kept(rule: SetRule, keys: KeyFacts) -> bool:
    match rule:
        case DistinctIds():
            return not keys.repeated
        case Unique():
            return not (keys.repeated or keys.claimed)
        case NewIds():
            return not keys.existing
        case Endpoint() | DanglingEdge():
            return not keys.missing
        case CardinalityMax(maximum=maximum):
            # Edges that are replaced are counted twice: then the engine decides.
            return keys.most <= maximum
        case CardinalityMin(minimum=minimum):
            return keys.least is None or keys.least >= minimum
        case _:
            assert_never(rule)


@dataclass(frozen=True, slots=True)
class _Space:
    """Keys that are compared with each other: the ids of a table, or those that a rule is about."""

    of: object
    kind: KeyKind


@dataclass(frozen=True, slots=True)
class _Entry:
    """Keys to count: their role, and the rows and columns that they are read from."""

    role: KeyRole
    rows: LoadedRows | Table
    columns: tuple[str, ...]

    @property
    def row_count(self) -> int:
        return self.rows.count_rows() if isinstance(self.rows, Table) else len(self.rows)

    @property
    def name(self) -> object:
        """What makes entries of one space differ."""
        rows = self.rows
        return self.role, rows.address if isinstance(rows, Table) else rows.type.name, self.columns

    def select(self, columns: Sequence[str]) -> DataFrame:
        assert not isinstance(self.rows, Table), "a table has sources"
        return self.rows.select(columns)


class _KeyCounts:
    """The keys that rules are about, to be counted together."""

    def __init__(
        self, engine: SparkEngine, shape: Shape, rows: Mapping[TableKey, LoadedRows], data: Data
    ) -> None:
        self._session = engine.session
        self._shape = shape
        self._rows = rows
        self._data = data
        self._entries: dict[_Space, dict[object, _Entry]] = {}

    def add(self, rule: SetRule) -> bool:
        """Add the keys that a rule is about; False where counts cannot decide it."""
        match rule:
            case DistinctIds(type_):
                self._add_ids(type_.table_key)
            case NewIds(type_):
                self._add_ids(type_.table_key)
                if self._has_given_ids(type_.table_key):
                    self._add_committed(type_.table_key)
            case Endpoint(edge, end, node):
                self._add_ids(node.table_key)
                self._add_committed(node.table_key)
                self._put(_space_of(rule), KeyRole.NEEDED, self._rows[edge.table_key], end)
            case DanglingEdge(edge, end, node):
                return self._add_remaining(rule, edge.table_key, end, node.table_key)
            case Unique(type_, members):
                return self._add_claims(rule, type_, members)
            case CardinalityMax(edge):
                self._add_edges(rule, edge.table_key)
            case CardinalityMin(edge, node):
                return self._add_sources(rule, edge.table_key, node.table_key)
            case _:
                assert_never(rule)
        return True

    def run(self) -> dict[_Space, KeyFacts]:
        """The facts of each space."""
        spaces = tuple(self._entries)
        if not spaces:
            return {}
        planned = {space: list(self._known_by_entry(space)) for space in spaces}
        sizes = {space: sum(starmap(_sent_count, planned[space])) for space in spaces}
        count = bucket_count(sum(sizes.values()), core_count(self._session))
        reads: list[SourceRead] = []
        sifted: list[SourceRead] = []
        frames: list[DataFrame] = []
        for number, space in enumerate(spaces):
            # Keys that one task can count are not distributed.
            own_count = 1 if sizes[space] <= SPARK_PARTITION_ROWS_MIN else count
            buckets = _Buckets(number % count, own_count, count)
            for entry, known in planned[space]:
                part = number * len(KeyRole) + entry.role
                shape = KeyShape(has_owners=space.kind is KeyKind.CLAIMS)
                cut = KeyCut(
                    shape,
                    buckets,
                    part,
                    known,
                    keeps_known=entry.role is KeyRole.OLD,
                    # One edge needs its node as much as a million do: a node that has most of them
                    # would be the work of one task.
                    is_distinct=entry.role is KeyRole.NEEDED and space.kind is KeyKind.IDS,
                )
                columns = shape.columns(entry.columns)
                sources = self._sources(entry, known)
                own_reads = reads if known is None else sifted
                own_reads += (SourceRead(source, columns, cut) for source in sources or ())
                if sources is None:
                    frames.append(of_frame(entry.select(columns), cut))
        if sifted:
            # Little of them is sent, and each task prepares the known keys once.
            frames.append(of_sources(self._session, sifted, rows_max=SPARK_BUCKET_ROWS_MAX))
        pieces = reduce(DataFrame.union, frames, of_sources(self._session, reads))
        kinds = tuple(space.kind for space in spaces)
        counted = route_pieces(pieces, count).mapInArrow(partial(count_keys, kinds), MESSAGE)
        facts: dict[_Space, KeyFacts] = {}
        # Messages of tasks: a few facts for each space of keys.
        for message in collect_messages(counted):
            for number, more in message.items():
                facts[spaces[number]] = facts.get(spaces[number], _NO_FACTS) | more
        return facts

    def _sources(self, entry: _Entry, known: HeldRows | None) -> Sequence[ReadableRows] | None:
        """What the keys of an entry are read from; None if it has to be a frame."""
        if not isinstance(entry.rows, Table):
            return entry.rows.sources()
        if known is not None and len(entry.columns) == 1:
            [column] = entry.columns
            is_text = entry.rows.schema.field(column).type == pa.utf8()
            if is_text and lookups.uses_index(entry.rows, column, known.row_count):
                address = entry.rows.address
                return [LookupSource(address, column, known, KEY, known.row_count)]
        return table_sources(entry.rows, core_count(self._session))

    def _known_by_entry(self, space: _Space) -> Iterator[tuple[_Entry, HeldRows | None]]:
        """Each entry with keys that decide which of its keys matter, where holding them is cheap.

        Committed keys matter that the load has or needs; needed ones, unless the load has them.
        """
        entries = self._entries[space].values()
        for entry in entries:
            roles: tuple[KeyRole, ...] = ()
            if entry.role is KeyRole.OLD:
                roles = (KeyRole.OWN, KeyRole.NEEDED)
            elif entry.role is KeyRole.NEEDED and space.kind is KeyKind.IDS:
                roles = (KeyRole.OWN,)
            others = [other for other in entries if other.role in roles]
            row_count = sum(other.row_count for other in others)
            is_cheap = is_held_cheaply(row_count, entry.row_count, core_count(self._session))
            is_large = entry.row_count > SPARK_PARTITION_ROWS_MIN
            yield entry, _hold_keys(others) if is_cheap and is_large else None

    def _add_ids(self, key: TableKey) -> None:
        # A minted id is distinct from all others.
        if self._has_given_ids(key):
            self._put(_ids_of(key), KeyRole.OWN, self._rows[key], "id")

    def _has_given_ids(self, key: TableKey) -> bool:
        rows = self._rows.get(key)
        return rows is not None and rows.has_given_ids

    def _add_committed(self, key: TableKey) -> None:
        if self._has_committed(key):
            self._put(_ids_of(key), KeyRole.OLD, self._data.table(key), "id")

    def _add_remaining(
        self, rule: DanglingEdge, edges: TableKey, end: str, nodes: TableKey
    ) -> bool:
        if self._shape.deleted:
            return False
        self._add_ids(nodes)
        if self._has_committed(edges):
            self._put(_space_of(rule), KeyRole.NEEDED, self._data.table(edges), end)
        return True

    def _add_claims(self, rule: Unique, type_: SchemaType, members: tuple[str, ...]) -> bool:
        key = type_.table_key
        if not _are_texts(type_, members):
            return False
        self._put(_space_of(rule), KeyRole.OWN, self._rows[key], *members)
        if self._has_committed(key):
            self._put(_space_of(rule), KeyRole.OLD, self._data.table(key), *members)
        return True

    def _add_edges(self, rule: CardinalityMax | CardinalityMin, edges: TableKey) -> None:
        """Add the sources of all edges that there will be."""
        if edges in self._shape.upserted:
            self._put(_space_of(rule), KeyRole.OWN, self._rows[edges], "src")
        if self._has_committed(edges):
            self._put(_space_of(rule), KeyRole.OLD, self._data.table(edges), "src")

    def _add_sources(self, rule: CardinalityMin, edges: TableKey, nodes: TableKey) -> bool:
        """Add the nodes that have to have edges, and the sources of these."""
        replaces = self._has_given_ids(edges) and self._has_committed(edges)
        if replaces or self._shape.deleted:
            # A node may lose an edge that is replaced by one of another node.
            return False
        self._add_edges(rule, edges)
        if nodes in self._shape.upserted:
            self._put(_space_of(rule), KeyRole.NEEDED, self._rows[nodes], "id")
        if edges in self._shape.overwritten and self._has_committed(nodes):
            self._put(_space_of(rule), KeyRole.NEEDED, self._data.table(nodes), "id")
        return True

    def _has_committed(self, key: TableKey) -> bool:
        """Whether committed rows remain after the write."""
        return key not in self._shape.overwritten and self._data.table(key).count_rows() > 0

    def _put(self, space: _Space, role: KeyRole, rows: LoadedRows | Table, *columns: str) -> None:
        entry = _Entry(role, rows, columns)
        self._entries.setdefault(space, {})[entry.name] = entry


def _hold_keys(entries: Sequence[_Entry]) -> HeldRows | None:
    """The keys of entries, for workers to hold; None if there are none, or not only in files."""
    reads: list[tuple[ReadableRows, tuple[str, ...]]] = []
    for entry in entries:
        sources = None if isinstance(entry.rows, Table) else entry.rows.sources()
        if sources is None:
            return None
        reads += ((source, entry.columns) for source in sources)
    return HeldRows(tuple(reads), KeyShape()) if reads else None


def _sent_count(entry: _Entry, known: HeldRows | None) -> int:
    """About how many keys of an entry are shuffled."""
    if known is None:
        return entry.row_count
    return min(entry.row_count, known.row_count) if entry.role is KeyRole.OLD else 0


@dataclass(frozen=True, slots=True)
class KeyShape:
    """Makes keys of rows; a key with a null is left out.

    Attributes:
        has_owners: Whether the last column is the id of the row, which is kept beside its key.
    """

    has_owners: bool = False

    def columns(self, members: tuple[str, ...]) -> tuple[str, ...]:
        """The columns to read for keys of these members."""
        return (*members, "id") if self.has_owners else members

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The keys, as texts that are equal exactly when those of all columns are."""
        columns = rows.drop_null().columns
        owners = [columns.pop()] if self.has_owners else []
        return pa.table([_join_texts(columns), *owners], names=[KEY, OWNER][: 1 + len(owners)])


def _join_texts(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    texts = [column.cast(pa.utf8()) for column in columns]
    if len(texts) == 1:
        return texts[0]
    parts = [part for text in texts for part in (pc.binary_length(text).cast(pa.utf8()), text)]
    return pc.binary_join_element_wise(*parts, ":")


@dataclass(frozen=True, slots=True)
class _Buckets:
    """The buckets of one space: `own_count` of all `count` buckets, from the one with a number."""

    first: int
    own_count: int
    count: int


@dataclass(frozen=True, slots=True)
class KeyCut:
    """Makes pieces of the keys of rows. Runs in executors.

    Attributes:
        known: Keys that decide which keys matter; None if all do.
        keeps_known: Whether known keys matter, or the others.
        is_distinct: Whether equal keys are sent once, because their number does not matter.
    """

    shape: KeyShape
    buckets: _Buckets
    part: int
    known: HeldRows | None
    keeps_known: bool
    is_distinct: bool = False

    def __call__(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """The pieces."""
        keys = self.shape(rows)
        if self.known is not None:
            sift = self.known.keep if self.keeps_known else self.known.drop
            keys = sift(keys, key=KEY)
        if self.is_distinct:
            keys = pa.table({KEY: pc.unique(keys[KEY])})
        buckets = self.buckets
        places = buckets_of(keys[KEY], buckets.own_count).astype(np.int32) + buckets.first
        return by_place(keys, places % buckets.count, self.part)


def count_keys(
    kinds: tuple[KeyKind, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Report the facts of the keys in some buckets. Runs in an executor; safe to run twice."""
    with report_errors():
        facts: dict[int, KeyFacts] = {}
        for parts in collect_parts(batches).values():
            for number in {part // len(KeyRole) for part in parts}:
                keys = {
                    role: parts[part]
                    for role in KeyRole
                    if (part := number * len(KeyRole) + role) in parts
                }
                more = find_facts(kinds[number], keys)
                facts[number] = facts.get(number, _NO_FACTS) | more
        yield to_message(facts)


def _space_of(rule: SetRule) -> _Space:
    match rule:
        case DistinctIds(type_) | NewIds(type_):
            return _ids_of(type_.table_key)
        case Endpoint(node=node) | DanglingEdge(node=node):
            return _ids_of(node.table_key)
        case Unique():
            return _Space(rule, KeyKind.CLAIMS)
        case CardinalityMax() | CardinalityMin():
            return _Space(rule, KeyKind.COUNTS)
        case _:
            assert_never(rule)


def _ids_of(key: TableKey) -> _Space:
    return _Space(key, KeyKind.IDS)


def _are_texts(type_: SchemaType, members: tuple[str, ...]) -> bool:
    """Whether two tuples of these members are equal exactly when their texts are."""
    return all(
        isinstance(kind, EnumType) or kind in _DISTINCT_AS_TEXT for kind in _kinds(type_, members)
    )


def _kinds(type_: SchemaType, members: tuple[str, ...]) -> Iterator[PropertyType]:
    for name in members:
        yield Scalar.STRING if name in ENDPOINTS else type_.property_named(name).type
