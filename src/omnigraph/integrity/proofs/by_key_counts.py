"""Proof by key counts: one Spark job counts every key that a load has, needs or meets.

Most loads keep every rule about keys. A job that groups equal keys proves which rules are kept, and
the engine looks for offenders of the others only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial, reduce
from typing import Final, Protocol, assert_never

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from omnigraph.engine.protocol import Data
from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.pieces import (
    Cut,
    bucket_count,
    by_key,
    collect_parts,
    of_table,
    route_pieces,
)
from omnigraph.integrity.cardinalities import CardinalityMax, CardinalityMin
from omnigraph.integrity.deltas import Shape
from omnigraph.integrity.ends import DanglingEdge, Endpoint
from omnigraph.integrity.keys import DistinctIds, NewIds
from omnigraph.integrity.proofs.proof import Proof
from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import SetRule
from omnigraph.integrity.uniques import Unique
from omnigraph.model.tables import TableKey
from omnigraph.model.types import EnumType, PropertyType, Scalar
from omnigraph.schema.catalog import ENDPOINTS, SchemaType
from omnigraph.storage.tables import Table

_DISTINCT_AS_TEXT: Final = frozenset(
    {Scalar.STRING, Scalar.BOOL, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64, Scalar.DATE}
)
"""Types of which two values are equal exactly when their texts are."""

_KEY: Final = "key"
_NO_KEYS: Final = pa.array([], pa.utf8())


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

    def pieces(self, columns: Sequence[str], cut: Cut) -> DataFrame:
        """Pieces of columns of the rows, made by `cut`."""
        ...


class _Role(IntEnum):
    """What the keys of an entry are: of the load, committed, or required by edges."""

    OWN = 0
    OLD = 1
    NEEDED = 2


@dataclass(frozen=True, slots=True)
class _Entry:
    """Keys to count: their space and role, and the type and columns that they are read from."""

    space: int
    role: _Role
    source: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """What is true of at least one key of a space."""

    repeated: bool = False
    existing: bool = False
    missing: bool = False

    def __or__(self, other: KeyFacts) -> KeyFacts:
        return KeyFacts(
            self.repeated or other.repeated,
            self.existing or other.existing,
            self.missing or other.missing,
        )


_NO_FACTS: Final = KeyFacts()


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

    Raises:
        StorageError: a table could not be read.
    """
    counts = _KeyCounts(engine, shape, rows, data)
    countable = {rule for rule in rules if counts.add(rule)}
    facts = counts.run() if countable else {}

    def is_proven(rule: RowRules | SetRule) -> bool:
        if isinstance(rule, RowRules) or rule not in countable:
            return False
        keys = facts.get(counts.space_of(rule), _NO_FACTS)
        match rule:
            case DistinctIds() | Unique():
                return not keys.repeated
            case NewIds():
                return not keys.existing
            case Endpoint():
                return not keys.missing
            case DanglingEdge() | CardinalityMax() | CardinalityMin():
                return False
            case _:
                assert_never(rule)

    return is_proven


class _KeyCounts:
    """The keys that rules are about, to be counted together."""

    def __init__(
        self, engine: SparkEngine, shape: Shape, rows: Mapping[TableKey, LoadedRows], data: Data
    ) -> None:
        self._session = engine.session
        self._shape = shape
        self._rows = rows
        self._data = data
        self._spaces: dict[object, int] = {}
        self._entries: dict[_Entry, LoadedRows | Table] = {}

    def space_of(self, rule: SetRule) -> int:
        """The number of the keys that a rule is about; -1 where there are none."""
        return self._spaces.get(_space(rule), -1)

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
                self._put(node.table_key, _Role.NEEDED, self._rows[edge.table_key], (end,))
            case Unique(type_, members):
                if self._has_committed(type_.table_key) or not _are_texts(type_, members):
                    return False
                self._put(rule, _Role.OWN, self._rows[type_.table_key], members)
            case DanglingEdge() | CardinalityMax() | CardinalityMin():
                return False
            case _:
                assert_never(rule)
        return True

    def run(self) -> dict[int, KeyFacts]:
        """The facts of each space."""
        if not self._entries:
            return {}
        cores = self._session.sparkContext.defaultParallelism
        count = bucket_count(sum(map(_row_count, self._entries.values())), cores)
        pieces = [self._pieces(entry, rows, count) for entry, rows in self._entries.items()]
        pieces_by_key = route_pieces(reduce(DataFrame.union, pieces), count)
        # Messages of tasks: three facts for each space of keys.
        messages = collect_messages(pieces_by_key.mapInArrow(count_keys, MESSAGE))
        facts: dict[int, KeyFacts] = {}
        for message in messages:
            for space, more in message.items():
                facts[space] = facts.get(space, _NO_FACTS) | more
        return facts

    def _pieces(self, entry: _Entry, rows: LoadedRows | Table, count: int) -> DataFrame:
        cut = partial(cut_keys, entry, count)
        if isinstance(rows, Table):
            return of_table(self._session, rows, entry.columns, cut)
        return rows.pieces(entry.columns, cut)

    def _add_ids(self, key: TableKey) -> None:
        # A minted id is distinct from all others.
        if self._has_given_ids(key):
            self._put(key, _Role.OWN, self._rows[key], ("id",))

    def _has_given_ids(self, key: TableKey) -> bool:
        rows = self._rows.get(key)
        return rows is not None and rows.has_given_ids

    def _add_committed(self, key: TableKey) -> None:
        if self._has_committed(key):
            self._put(key, _Role.OLD, self._data.table(key), ("id",))

    def _has_committed(self, key: TableKey) -> bool:
        """Whether committed rows remain after the write."""
        return key not in self._shape.overwritten and self._data.table(key).count_rows() > 0

    def _put(
        self, space: object, role: _Role, rows: LoadedRows | Table, columns: tuple[str, ...]
    ) -> None:
        number = self._spaces.setdefault(space, len(self._spaces))
        source = "" if isinstance(rows, Table) else rows.type.name
        self._entries[_Entry(number, role, source, columns)] = rows


def _row_count(rows: LoadedRows | Table) -> int:
    return rows.count_rows() if isinstance(rows, Table) else len(rows)


def cut_keys(entry: _Entry, count: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Pieces of the keys that rows have in these columns; a key with a null is left out."""
    rows = rows.select(entry.columns).drop_null()
    keys = pa.table({_KEY: _texts(rows.columns)})
    return by_key(keys, _KEY, count, entry.space * len(_Role) + entry.role)


def _texts(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """A text for each row; two are equal exactly when all the columns' texts are."""
    texts = [column.cast(pa.utf8()) for column in columns]
    if len(texts) == 1:
        return texts[0]
    parts = [part for text in texts for part in (pc.binary_length(text).cast(pa.utf8()), text)]
    return pc.binary_join_element_wise(*parts, ":")


def count_keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Report the facts of the keys in some buckets. Runs in an executor; safe to run twice."""
    with report_errors():
        facts: dict[int, KeyFacts] = {}
        for parts in collect_parts(batches).values():
            for space in {part // len(_Role) for part in parts}:
                keys = {
                    role: parts[part][_KEY].combine_chunks()
                    for role in _Role
                    if (part := space * len(_Role) + role) in parts
                }
                facts[space] = facts.get(space, _NO_FACTS) | _facts_of(keys)
        yield to_message(facts)


def _facts_of(keys: Mapping[_Role, pa.Array]) -> KeyFacts:
    own, old, needed = (keys.get(role, _NO_KEYS) for role in _Role)
    distinct = own.unique()
    unmet = needed.filter(pc.invert(pc.is_in(needed, value_set=distinct))).unique()
    # A table has every id once.
    met = _count_in(old, unmet)
    return KeyFacts(
        repeated=len(distinct) < len(own),
        existing=_count_in(old, distinct) > 0,
        missing=met < len(unmet),
    )


def _count_in(values: pa.Array, among: pa.Array) -> int:
    if not len(values) or not len(among):
        return 0
    return pc.sum(pc.is_in(values, value_set=among)).as_py() or 0


def _space(rule: SetRule) -> object:
    match rule:
        case DistinctIds(type_) | NewIds(type_):
            return type_.table_key
        case Endpoint(node=node):
            return node.table_key
        case _:
            return rule


def _are_texts(type_: SchemaType, members: tuple[str, ...]) -> bool:
    """Whether two tuples of these members are equal exactly when their texts are."""
    return all(
        isinstance(kind, EnumType) or kind in _DISTINCT_AS_TEXT for kind in _kinds(type_, members)
    )


def _kinds(type_: SchemaType, members: tuple[str, ...]) -> Iterator[PropertyType]:
    for name in members:
        yield Scalar.STRING if name in ENDPOINTS else type_.property_named(name).type
