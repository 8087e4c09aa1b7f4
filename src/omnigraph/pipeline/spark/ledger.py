"""The ledger: every id a load brings, needs or finds, counted in one job.

Most loads keep every rule about keys. One job that brings equal keys together tells which rules are
kept for sure, and only of the others offenders have to be looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial, reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.engine.spark.failures import reporting
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.pieces import arrived, bucket_count, by_key, of_table, sent
from omnigraph.integrity.deltas import Shape
from omnigraph.integrity.ends import Endpoint
from omnigraph.integrity.keys import DistinctIds, NewIds
from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import RuleSet, SetRule
from omnigraph.integrity.uniques import Unique
from omnigraph.model.tables import TableKey
from omnigraph.model.types import EnumType, PropertyType, Scalar
from omnigraph.pipeline.spark.keys import KeyRows
from omnigraph.schema.catalog import ENDPOINTS, SchemaType
from omnigraph.storage.tables import Table
from omnigraph.transaction.work import View

IsKept = Callable[[RowRules | SetRule], bool]

_SPELT_APART: Final = frozenset(
    {Scalar.STRING, Scalar.BOOL, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64, Scalar.DATE}
)
"""Types of which two values are alike just when their texts are."""

_KEY: Final = "key"
_NO_KEYS: Final = pa.array([], pa.utf8())


class _Role(IntEnum):
    """What the keys of an entry are: brought by the load, there already, or needed by edges."""

    OWN = 0
    OLD = 1
    NEEDED = 2


@dataclass(frozen=True, slots=True)
class _Entry:
    """Keys in the ledger: their space and role, and the type and columns they are read from."""

    space: int
    role: _Role
    source: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """What is true of at least one key of a space."""

    repeated: bool = False
    existing: bool = False
    missing: bool = False

    def __or__(self, other: Findings) -> Findings:
        return Findings(
            self.repeated or other.repeated,
            self.existing or other.existing,
            self.missing or other.missing,
        )


_NOTHING: Final = Findings()


def kept_by_ledger(
    engine: SparkEngine,
    rule_set: RuleSet,
    shape: Shape,
    rows: Mapping[TableKey, KeyRows],
    view: View,
) -> IsKept:
    """Which rules the rows keep for sure; executors have asked all row rules already."""
    ledger = _Ledger(engine, shape, rows, view)
    asked = [each for each in rule_set.set_rules_for(shape) if ledger.enter(each)]
    findings = ledger.findings() if asked else {}

    def is_kept(rule: RowRules | SetRule) -> bool:
        if isinstance(rule, RowRules):
            return True
        if rule not in asked:
            return False
        found = findings.get(ledger.space_of(rule), _NOTHING)
        match rule:
            case DistinctIds() | Unique():
                return not found.repeated
            case NewIds():
                return not found.existing
            case Endpoint():
                return not found.missing
            case _:
                return False

    return is_kept


class _Ledger:
    def __init__(
        self, engine: SparkEngine, shape: Shape, rows: Mapping[TableKey, KeyRows], view: View
    ) -> None:
        self._session = engine.session
        self._shape = shape
        self._rows = rows
        self._view = view
        self._spaces: dict[object, int] = {}
        self._entries: dict[_Entry, KeyRows | Table] = {}

    def space_of(self, rule: SetRule) -> int:
        """The number of the keys that a rule is about; of none where there are none."""
        return self._spaces.get(_space(rule), -1)

    def enter(self, rule: SetRule) -> bool:
        """Enter the keys that a rule is about; False where the ledger cannot decide it."""
        match rule:
            case DistinctIds(type_):
                self._enter_ids(type_.table_key)
            case NewIds(type_):
                self._enter_ids(type_.table_key)
                if self._has_given_ids(type_.table_key):
                    self._enter_committed(type_.table_key)
            case Endpoint(edge, end, node):
                self._enter_ids(node.table_key)
                self._enter_committed(node.table_key)
                self._put(node.table_key, _Role.NEEDED, self._rows[edge.table_key], (end,))
            case Unique(type_, members):
                if self._remaining(type_.table_key) or not _are_spelt_apart(type_, members):
                    return False
                self._put(rule, _Role.OWN, self._rows[type_.table_key], members)
            case _:
                return False
        return True

    def findings(self) -> dict[int, Findings]:
        """What is true in each space."""
        if not self._entries:
            return {}
        cores = self._session.sparkContext.defaultParallelism
        count = bucket_count(sum(map(_row_count, self._entries.values())), cores)
        pieces = [self._pieces(entry, rows, count) for entry, rows in self._entries.items()]
        every = sent(reduce(DataFrame.union, pieces), count)
        # Messages of tasks: three answers for each space of keys.
        messages = collect_messages(every.mapInArrow(look_through, MESSAGE))
        found: dict[int, Findings] = {}
        for each in messages:
            for space, more in each.items():
                found[space] = found.get(space, _NOTHING) | more
        return found

    def _pieces(self, entry: _Entry, rows: KeyRows | Table, count: int) -> DataFrame:
        cut = partial(cut_keys, entry, count)
        if isinstance(rows, Table):
            return of_table(self._session, rows, entry.columns, cut)
        return rows.pieces(entry.columns, cut)

    def _enter_ids(self, key: TableKey) -> None:
        # An id that is minted is nobody else's.
        if self._has_given_ids(key):
            self._put(key, _Role.OWN, self._rows[key], ("id",))

    def _has_given_ids(self, key: TableKey) -> bool:
        rows = self._rows.get(key)
        return rows is not None and rows.written.minted_count < rows.written.row_count

    def _enter_committed(self, key: TableKey) -> None:
        if self._remaining(key):
            self._put(key, _Role.OLD, self._view.data.table(key), ("id",))

    def _remaining(self, key: TableKey) -> bool:
        """Whether committed rows stay."""
        is_kept = key not in self._shape.overwritten
        return is_kept and self._view.data.table(key).count_rows() > 0

    def _put(
        self, space: object, role: _Role, rows: KeyRows | Table, columns: tuple[str, ...]
    ) -> None:
        number = self._spaces.setdefault(space, len(self._spaces))
        source = rows.type.name if isinstance(rows, KeyRows) else ""
        self._entries[_Entry(number, role, source, columns)] = rows


def _row_count(rows: KeyRows | Table) -> int:
    return rows.count_rows() if isinstance(rows, Table) else len(rows)


def cut_keys(entry: _Entry, count: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Pieces of the keys that rows have in these columns; a key with a null is none."""
    rows = rows.select(entry.columns).drop_null()
    keys = pa.table({_KEY: _texts(rows.columns)})
    return by_key(keys, _KEY, count, entry.space * len(_Role) + entry.role)


def _texts(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """A text for each row; two are alike just when all the columns' texts are."""
    texts = [each.cast(pa.utf8()) for each in columns]
    if len(texts) == 1:
        return texts[0]
    parts = [part for each in texts for part in (pc.binary_length(each).cast(pa.utf8()), each)]
    return pc.binary_join_element_wise(*parts, ":")


def look_through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Say what is true of the keys in some buckets. Runs in an executor; safe to run twice."""
    with reporting():
        found: dict[int, Findings] = {}
        for parts in arrived(batches).values():
            for space in {part // len(_Role) for part in parts}:
                keys = {
                    role: parts[part][_KEY].combine_chunks()
                    for role in _Role
                    if (part := space * len(_Role) + role) in parts
                }
                found[space] = found.get(space, _NOTHING) | _looked_through(keys)
        yield to_message(found)


def _looked_through(keys: Mapping[_Role, pa.Array]) -> Findings:
    own, old, needed = (keys.get(role, _NO_KEYS) for role in _Role)
    distinct = own.unique()
    unmet = needed.filter(pc.invert(pc.is_in(needed, value_set=distinct))).unique()
    # Ids of a table are there once each.
    met = _count_in(old, unmet)
    return Findings(
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


def _are_spelt_apart(type_: SchemaType, members: tuple[str, ...]) -> bool:
    return all(_is_spelt_apart(kind) for kind in _kinds(type_, members))


def _kinds(type_: SchemaType, members: tuple[str, ...]) -> Iterator[PropertyType]:
    for name in members:
        yield Scalar.STRING if name in ENDPOINTS else type_.property_named(name).type


def _is_spelt_apart(kind: PropertyType) -> bool:
    return isinstance(kind, EnumType) or kind in _SPELT_APART
