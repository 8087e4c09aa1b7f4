"""The ledger: every id a load brings, needs or finds, counted in one job.

Most loads keep every rule about keys. One grouping by key tells which rules are kept for sure, and
only of the others offenders have to be looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.engine.spark.relations import table_frame
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
from omnigraph.transaction.work import View

IsKept = Callable[[RowRules | SetRule], bool]

_SPELT_APART: Final = frozenset(
    {Scalar.STRING, Scalar.BOOL, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64, Scalar.DATE}
)
"""Types of which two values are alike just when their texts are."""

_ENTRY: Final = ("space", "key", "own", "old", "needed")


@dataclass(frozen=True, slots=True)
class Findings:
    """What is true of at least one key of a space."""

    repeated: bool = False
    existing: bool = False
    missing: bool = False


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
        self._entries: dict[tuple[int, str], DataFrame] = {}

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
                column = sql.col(end)
                needed = self._rows[edge.table_key].frame([end]).where(column.isNotNull())
                space = self._numbered(node.table_key)
                self._put(space, f"{edge.name} {end}", needed, column, needed=1)
            case Unique(type_, members):
                if self._remaining(type_.table_key) or not _are_spelt_apart(type_, members):
                    return False
                self._enter_tuples(rule)
            case _:
                return False
        return True

    def findings(self) -> dict[int, Findings]:
        """What is true in each space."""
        if not self._entries:
            return {}
        every = reduce(DataFrame.union, self._entries.values())
        own, old, needed = (sql.col(name) for name in _ENTRY[2:])
        keys = every.groupBy("space", "key").agg(
            sql.sum("own").alias("own"),
            sql.max("old").alias("old"),
            sql.max("needed").alias("needed"),
        )
        found = keys.groupBy("space").agg(
            sql.max(own > 1).alias("repeated"),
            sql.max((own > 0) & (old > 0)).alias("existing"),
            sql.max((needed > 0) & (own == 0) & (old == 0)).alias("missing"),
        )
        # One row for each space of keys.
        return {
            each.space: Findings(each.repeated, each.existing, each.missing)
            for each in found.collect()
        }

    def _enter_ids(self, key: TableKey) -> None:
        # An id that is minted is nobody else's.
        if self._has_given_ids(key):
            self._put(
                self._numbered(key), "own", self._rows[key].frame(["id"]), sql.col("id"), own=1
            )

    def _has_given_ids(self, key: TableKey) -> bool:
        rows = self._rows.get(key)
        return rows is not None and rows.written.minted_count < rows.written.row_count

    def _enter_committed(self, key: TableKey) -> None:
        if self._remaining(key):
            table = self._view.data.table(key)
            ids = table_frame(self._session, table, ["id"])
            self._put(self._numbered(key), "old", ids, sql.col("id"), old=1)

    def _enter_tuples(self, rule: Unique) -> None:
        rows = self._rows[rule.type.table_key].frame(rule.members)
        for name in rule.members:
            rows = rows.where(sql.col(name).isNotNull())
        texts = [sql.col(name).cast("string") for name in rule.members]
        key = texts[0] if len(texts) == 1 else sql.to_json(sql.array(*texts))
        self._put(self._numbered(_space(rule)), "own", rows, key, own=1)

    def _remaining(self, key: TableKey) -> bool:
        """Whether committed rows stay."""
        is_kept = key not in self._shape.overwritten
        return is_kept and self._view.data.table(key).count_rows() > 0

    def _numbered(self, space: object) -> int:
        return self._spaces.setdefault(space, len(self._spaces))

    def _put(self, space: int, part: str, rows: DataFrame, key: Column, **counts: int) -> None:
        if (space, part) not in self._entries:
            numbers = [sql.lit(counts.get(name, 0)).alias(name) for name in _ENTRY[2:]]
            entry = rows.select(sql.lit(space).alias("space"), key.alias("key"), *numbers)
            self._entries[space, part] = entry


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
