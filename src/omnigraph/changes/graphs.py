"""Comparing two points of a graph's history, type by type."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

from omnigraph.changes.records import Changes, RowChange, row_changes
from omnigraph.choices import EngineName, Op, TableKind
from omnigraph.engine.choose import Measure
from omnigraph.engine.protocol import Data
from omnigraph.errors import ConflictError, ErrorCode, InvalidParameterError
from omnigraph.limits import CHANGES_LOCAL_BYTES_MAX, CHANGES_LOCAL_ROWS_MAX
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.arguments import require_texts
from omnigraph.model.counts import Counts
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.storage.pairs import DataSize, size_of, unequal_pairs
from omnigraph.storage.tables import Table


@dataclass(frozen=True, slots=True)
class Side:
    """One point of a graph's history: its snapshot, and how to open its tables."""

    snapshot: Snapshot
    data: Data


class Comparer(Protocol):
    """What an engine does for comparisons."""

    @property
    def name(self) -> EngineName:
        """Which engine this is."""
        ...

    def compare(self, type_: SchemaType, before: Table, after: Table, data: Data) -> Changes:
        """How the rows of a type differ between two versions of its table.

        A row that was rewritten with equal values did not change. Null is not the empty text; NaN
        equals itself.

        Raises:
            StorageError: a table could not be read.
        """
        ...


_Word = TypeVar("_Word", TableKind, Op)


def _parse_words(
    words: type[_Word], texts: str | Collection[str] | None, name: str
) -> frozenset[_Word] | None:
    wanted = require_texts(texts, name)
    if wanted is None:
        return None
    if strange := sorted(set(wanted) - set(words)):
        message = f"there is no {strange[0]!r} among {name}"
        raise InvalidParameterError(message, hint=f"use {', '.join(words)}", name=name)
    return frozenset(map(words, wanted))


@dataclass(frozen=True, slots=True)
class Filter:
    """Which changes are wanted; None is all."""

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
        """Validate a caller's filter; each argument is one text or several.

        Raises:
            InvalidParameterError: there is no such kind or operation.
            NotFoundError: the catalog has no such type.
        """
        names = require_texts(types, "types")
        for name in names or ():
            catalog.type_named(name)
        return cls(_parse_words(TableKind, kinds, "kinds"), names, _parse_words(Op, ops, "ops"))

    def wants(self, key: TableKey) -> bool:
        """Whether changes of a table are wanted."""
        if self.kinds is not None and key.kind not in self.kinds:
            return False
        return self.types is None or key.type_name in self.types


@dataclass(frozen=True, slots=True)
class GraphDiff:
    """How a graph differs between two commits.

    Attributes:
        before: The earlier commit; `after` is the later one.
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
        """By type, how many rows were inserted, updated and deleted."""
        return {table.type.name: self._count_ops(table.counts) for table in self.tables}

    def rows(self) -> Iterator[RowChange]:
        """Every change, with the row before and after it; Spark returns them part by part."""
        for table in self.tables:
            yield from row_changes(table, self.ops)

    def _count_ops(self, counts: Counts) -> Counts:
        return Counts(
            counts.inserted if Op.INSERT in self.ops else 0,
            counts.updated if Op.UPDATE in self.ops else 0,
            counts.deleted if Op.DELETE in self.ops else 0,
        )


def compare_graphs(
    catalog: Catalog, before: Side, after: Side, comparer: Comparer, wanted: Filter | None = None
) -> GraphDiff:
    """How the rows of two points differ. Types whose table has not moved cost nothing.

    Raises:
        ConflictError: the two have different schemas.
    """
    require_one_schema(before.snapshot, after.snapshot)
    wanted = wanted or Filter()
    ops = frozenset(Op) if wanted.ops is None else frozenset(wanted.ops)
    compared = [
        _compare(type_, before, after, comparer)
        for type_ in catalog.types
        if wanted.wants(type_.table_key)
        and has_moved(before.snapshot, after.snapshot, type_.table_key)
    ]
    tables = tuple(changes for changes in compared if changes.counts)
    old, new = before.snapshot.head.commit_id, after.snapshot.head.commit_id
    return GraphDiff(old, new, tables, ops, comparer.name)


def _compare(type_: SchemaType, before: Side, after: Side, comparer: Comparer) -> Changes:
    old, new = (side.data.table(type_.table_key) for side in (before, after))
    return comparer.compare(type_, old, new, after.data)


def difference_sizes(
    before: Side, after: Side, keys: Iterable[TableKey], wanted: Filter | None = None
) -> Iterator[DataSize]:
    """Estimate how much differs in each table between two points. Reads no rows."""
    for key in keys:
        is_wanted = wanted is None or wanted.wants(key)
        if is_wanted and has_moved(before.snapshot, after.snapshot, key):
            old, new = before.data.table(key), after.data.table(key)
            yield size_of(old, new, unequal_pairs(old, new))


def measure_differences(sizes: Iterable[DataSize]) -> Iterator[Measure]:
    """How many rows and bytes differ in all; sizes are measured only when this is iterated."""
    total = sum(sizes, DataSize())
    yield Measure(total.row_count, CHANGES_LOCAL_ROWS_MAX, "about {:,} rows differ")
    yield Measure(total.byte_count, CHANGES_LOCAL_BYTES_MAX, "about {:,} bytes differ")


def has_moved(before: Snapshot, after: Snapshot, key: TableKey) -> bool:
    """Whether a table has another version in the later snapshot."""
    return before.pin(key).place != after.pin(key).place


def require_one_schema(before: Snapshot, after: Snapshot) -> None:
    """Reject a comparison of rows with different columns.

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
