"""Comparing two points of a graph's history, type by type."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

from omnigraph.changes.records import Changes, RowChange, row_changes
from omnigraph.changes.tables import compare_tables
from omnigraph.choices import EngineName, Op, TableKind
from omnigraph.engine.protocol import Data, Engine
from omnigraph.errors import ConflictError, ErrorCode, InvalidParameterError
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.arguments import checked_texts
from omnigraph.model.counts import Counts
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.storage.pairs import Size, size_of, unequal_pairs


@dataclass(frozen=True, slots=True)
class Side:
    """One point of history: what it pins, and how to open that."""

    snapshot: Snapshot
    data: Data


_Word = TypeVar("_Word", TableKind, Op)


def _words(
    known: type[_Word], given: str | Collection[str] | None, name: str
) -> frozenset[_Word] | None:
    asked = checked_texts(given, name)
    if asked is None:
        return None
    if strange := sorted(set(asked) - set(known)):
        message = f"there is no {strange[0]!r} among {name}"
        raise InvalidParameterError(message, hint=f"use {', '.join(known)}", name=name)
    return frozenset(map(known, asked))


@dataclass(frozen=True, slots=True)
class Filter:
    """Which changes are asked for; None is all."""

    kinds: Collection[TableKind] | None = None
    types: Collection[str] | None = None
    ops: Collection[Op] | None = None

    @classmethod
    def parse(
        cls,
        catalog: Catalog,
        kinds: str | Collection[str] | None,
        types: str | Collection[str] | None,
        ops: str | Collection[str] | None,
    ) -> Self:
        """Check what a caller asked for; of each, a text or several.

        Raises:
            InvalidParameterError: there is no such kind or operation.
            NotFoundError: the catalog has no such type.
        """
        names = checked_texts(types, "types")
        for name in names or ():
            catalog.type_named(name)
        return cls(_words(TableKind, kinds, "kinds"), names, _words(Op, ops, "ops"))

    def wants(self, key: TableKey) -> bool:
        """Whether changes of a table are asked for."""
        if self.kinds is not None and key.kind not in self.kinds:
            return False
        return self.types is None or key.type_name in self.types


@dataclass(frozen=True, slots=True)
class GraphDiff:
    """How a graph differs between two commits.

    Attributes:
        before: The commit that is compared from, and `after` the one that is compared to.
        tables: The types that differ, in the catalog's order.
        engine: The engine that compared them, and `why` it was chosen.
    """

    before: str
    after: str
    tables: tuple[Changes, ...]
    ops: frozenset[Op] = frozenset(Op)
    engine: EngineName = EngineName.LOCAL
    why: str = ""

    @property
    def counts(self) -> Mapping[str, Counts]:
        """By type, how many rows came, changed and went."""
        return {each.type.name: self._counted(each.counts) for each in self.tables}

    def rows(self) -> Iterator[RowChange]:
        """Every change, with the row as it was and as it is; Spark gives them part by part."""
        for each in self.tables:
            yield from row_changes(each, self.ops)

    def _counted(self, counts: Counts) -> Counts:
        return Counts(
            counts.inserted if Op.INSERT in self.ops else 0,
            counts.updated if Op.UPDATE in self.ops else 0,
            counts.deleted if Op.DELETE in self.ops else 0,
        )


def compare_graphs(
    catalog: Catalog, before: Side, after: Side, engine: Engine, wanted: Filter | None = None
) -> GraphDiff:
    """How the rows of two points differ. Types whose table did not move cost nothing.

    Raises:
        ConflictError: the two have different schemas.
    """
    require_one_schema(before.snapshot, after.snapshot)
    wanted = wanted or Filter()
    ops = frozenset(Op) if wanted.ops is None else frozenset(wanted.ops)
    found = [
        _compared(type_, before, after, engine)
        for type_ in catalog.types
        if wanted.wants(type_.table_key)
        and has_moved(before.snapshot, after.snapshot, type_.table_key)
    ]
    old, new = before.snapshot.head.commit_id, after.snapshot.head.commit_id
    return GraphDiff(old, new, tuple(each for each in found if each.counts), ops, engine.name)


def _compared(type_: SchemaType, before: Side, after: Side, engine: Engine) -> Changes:
    old, new = (side.data.table(type_.table_key) for side in (before, after))
    if engine.name is EngineName.LOCAL:
        return compare_tables(type_, old, new, engine, after.data)
    # Imported here: comparing in this process must not pay for Spark.
    from omnigraph.changes.spark.tables import compare_on_spark

    return compare_on_spark(type_, old, new, engine)


def size_of_difference(
    before: Side, after: Side, keys: Iterable[TableKey], wanted: Filter | None = None
) -> Size:
    """About how much differs in some tables between two points. Reads no rows."""
    total = Size()
    for key in keys:
        is_asked_for = wanted is None or wanted.wants(key)
        if is_asked_for and has_moved(before.snapshot, after.snapshot, key):
            old, new = before.data.table(key), after.data.table(key)
            total += size_of(old, new, unequal_pairs(old, new))
    return total


def has_moved(before: Snapshot, after: Snapshot, key: TableKey) -> bool:
    """Whether a table is at another version."""
    return before.pin(key).place != after.pin(key).place


def require_one_schema(before: Snapshot, after: Snapshot) -> None:
    """Refuse to compare rows of different shapes.

    Raises:
        ConflictError: the two have different schemas.
    """
    if before.schema_digest == after.schema_digest:
        return
    message = (
        f"commits {before.head.commit_id} and {after.head.commit_id} have different schemas, "
        "and their rows cannot be compared"
    )
    raise ConflictError(message, hint="compare within one schema", code=ErrorCode.SCHEMA_CHANGED)
