"""Comparing two points of a graph's history, type by type.

Types are matched by their identities (docs/decisions/0012), and rows of either point are compared
as rows of the later type. So a row did not change because its type or a property was renamed, or
because a property was added with its default, dropped or widened: that is in `GraphDiff.schema`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, Self, TypeAlias, TypeVar

from omnigraph.changes.diffs import GraphDiff
from omnigraph.changes.lifts import Lift, LiftPair
from omnigraph.changes.rows import Changes
from omnigraph.choices import EngineName, Op, TableKind
from omnigraph.engine.budget import checkpoint
from omnigraph.engine.choose import Measure
from omnigraph.engine.protocol import Data
from omnigraph.errors import InvalidParameterError
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.arguments import require_texts
from omnigraph.model.tables import TablePin
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.schema.matching import match_by_identity
from omnigraph.schema.plan import SchemaPlan, plan_change
from omnigraph.schema.steps import SchemaStep
from omnigraph.storage.pairs import DataSize, size_of, unequal_pairs
from omnigraph.storage.tables import Table

CHANGES_LOCAL_ROWS_MAX: Final = 1_000_000
CHANGES_LOCAL_BYTES_MAX: Final = 256 << 20
"""Rows that differ, and their size in files, that a merge or a diff holds in this process."""


@dataclass(frozen=True, slots=True)
class Side:
    """One point of a graph's history: its snapshot, and how to open its tables.

    Attributes:
        sees: Whether the actor may read a type; all others are left out of comparisons.
    """

    snapshot: Snapshot
    data: Data
    sees: Callable[[str], bool] = lambda _: True

    def hides(self, pin: TablePin | None) -> bool:
        """Whether the actor may not read the type of a table that is compared."""
        return pin is not None and not self.sees(pin.key.type_name)


class Comparer(Protocol):
    """What an engine does for comparisons."""

    @property
    def name(self) -> EngineName:
        """Which engine this is."""
        ...

    def compare(
        self,
        type_: SchemaType,
        before: Table | None,
        after: Table | None,
        data: Data,
        lifts: LiftPair | None = None,
    ) -> Changes:
        """How the rows of a type differ between two versions of its table.

        A row that was rewritten with equal values did not change. Null is not the empty text; NaN
        equals itself.

        Args:
            before: The earlier version, or None; so with `after`.
            lifts: How rows of either version become rows of the type; when None, they are such.
        """
        ...


SchemaSteps: TypeAlias = Callable[[Snapshot, Snapshot], tuple[SchemaStep, ...]]
"""Compares the schemas of two snapshots."""

FindCatalog: TypeAlias = Callable[[str], Catalog]
"""Returns the catalog of a schema by its digest."""

_Word = TypeVar("_Word", TableKind, Op)


def _parse_words(
    words: type[_Word], texts: str | Collection[str] | None, name: str
) -> frozenset[_Word] | None:
    wanted = require_texts(texts, name)
    if wanted is None:
        return None
    if strange := sorted(set(wanted) - set(words)):
        message = f"{strange[0]!r} is not a valid choice for {name}"
        raise InvalidParameterError(message, hint=f"use {', '.join(words)}", name=name)
    return frozenset(map(words, wanted))


@dataclass(frozen=True, slots=True)
class Filter:
    """Which changes are wanted; None is all.

    Attributes:
        origins: The kind and the origin of each wanted type: a type is wanted under all its names.
    """

    kinds: Collection[TableKind] | None = None
    origins: Collection[tuple[TableKind, str]] | None = None
    ops: Collection[Op] | None = None

    @classmethod
    def parse(
        cls,
        catalog: Catalog,
        points: Collection[Snapshot],
        kinds: str | Collection[str] | None,
        types: str | Collection[str] | None,
        ops: str | Collection[str] | None,
    ) -> Self:
        """Validate a caller's filter; each argument is one text or several.

        Args:
            catalog: The schema of the first point.
            points: Where types have the given names: at the first of these points that has a type
                of that name, or until it was dropped.
        """
        names = require_texts(types, "types")
        origins = None
        if names is not None:
            origins = frozenset(_origin_of(name, catalog, points) for name in names)
        return cls(_parse_words(TableKind, kinds, "kinds"), origins, _parse_words(Op, ops, "ops"))

    def wants(self, pin: TablePin) -> bool:
        """Whether changes of a table are wanted."""
        kind = pin.key.kind
        if self.kinds is not None and kind not in self.kinds:
            return False
        return self.origins is None or (kind, pin.identity.origin) in self.origins


def _origin_of(name: str, catalog: Catalog, points: Collection[Snapshot]) -> tuple[TableKind, str]:
    for snapshot in points:
        for key, pin in snapshot.pins.items():
            if key.type_name == name:
                return key.kind, pin.identity.origin
    for snapshot in points:
        for tombstone in reversed(snapshot.tombstones):
            if tombstone.key.type_name == name:
                return tombstone.key.kind, tombstone.origin
    return catalog.type_named(name).table_key.kind, name


@dataclass(frozen=True, slots=True)
class TypeComparison:
    """One type whose rows may differ between two points, and where they are.

    Attributes:
        type: The type of the later point; of the earlier one if the later one has none.
        names: Its names at both points.
        before: The earlier table; None if that point has no such type, and so with `after`.
    """

    type: SchemaType
    before: Table | None
    after: Table | None
    lifts: LiftPair
    names: frozenset[str]

    @property
    def size(self) -> DataSize:
        """An estimate of how much differs. Reads no rows."""
        pairs = unequal_pairs(self.before, self.after, self.lifts.columns)
        return size_of(self.before, self.after, pairs)


def compare_graphs(
    catalog: FindCatalog,
    before: Side,
    after: Side,
    comparer: Comparer,
    wanted: Filter | None = None,
    *,
    steps: SchemaSteps | None = None,
) -> GraphDiff:
    """How the rows of two points differ. Types whose table has not moved cost nothing.

    Args:
        steps: Compares the schemas, where they or the identities of types and properties differ.
    """
    wanted = wanted or Filter()
    ops = frozenset(Op) if wanted.ops is None else frozenset(wanted.ops)
    compared = []
    for pair in moved_types(catalog, before, after, wanted):
        checkpoint()
        changes = comparer.compare(pair.type, pair.before, pair.after, after.data, pair.lifts)
        compared.append(changes)
    tables = tuple(changes for changes in compared if changes.counts)
    old, new = before.snapshot.head.commit_id, after.snapshot.head.commit_id
    schema: tuple[SchemaStep, ...] = ()
    if steps is not None and not has_same_schema(before.snapshot, after.snapshot):
        schema = steps(before.snapshot, after.snapshot)
    hidden = tuple(sorted(hidden_types(before, after, wanted)))
    return GraphDiff(old, new, tables, ops, comparer.name, schema=schema, hidden=hidden)


def hidden_types(before: Side, after: Side, wanted: Filter) -> frozenset[str]:
    """The wanted types that are not compared, because the actor may not read them."""
    return frozenset(
        pin.key.type_name
        for side in (before, after)
        for pin in side.snapshot.pins.values()
        if wanted.wants(pin) and side.hides(pin)
    )


def moved_types(
    catalog: FindCatalog, before: Side, after: Side, wanted: Filter | None = None
) -> Iterator[TypeComparison]:
    """The types whose tables are not the same at two points, matched by identity. Reads no rows."""
    for old, new in moved_pins(before.snapshot, after.snapshot, wanted):
        if before.hides(old) or after.hides(new):
            continue
        old_type, new_type = (
            None if own is None else catalog(side.snapshot.schema_digest).type_of(own.key)
            for own, side in ((old, before), (new, after))
        )
        type_ = new_type or old_type
        assert type_ is not None, "each pin has a type"
        lifts = LiftPair.identity(type_)
        if old is not None and new is not None and old_type is not None:
            lift = Lift.between(old_type, old.identity, wanted=type_, wanted_identity=new.identity)
            lifts = LiftPair(lift, lifts.after)
        yield TypeComparison(
            type_,
            None if old is None else before.data.table(old.key),
            None if new is None else after.data.table(new.key),
            lifts,
            frozenset(pin.key.type_name for pin in (old, new) if pin is not None),
        )


def changed_types(catalog: FindCatalog, before: Side, after: Side) -> frozenset[str]:
    """The types whose rows or declarations may differ between two points. Reads no rows.

    By their names at both points. A table that was only indexed has not changed.
    """
    moved = moved_types(catalog, before, after)
    rows = frozenset(name for each in moved if each.size.row_count for name in each.names)
    if has_same_schema(before.snapshot, after.snapshot):
        return rows
    return rows | plan_between(catalog, before.snapshot, after.snapshot).changed_types


def plan_between(catalog: FindCatalog, before: Snapshot, after: Snapshot) -> SchemaPlan:
    """The steps between the schemas of two points, which names have no part in."""
    old, new = catalog(before.schema_digest), catalog(after.schema_digest)
    identities = (
        {key: pin.identity for key, pin in point.pins.items()} for point in (before, after)
    )
    matching = match_by_identity(old, next(identities), new, next(identities))
    return plan_change(old, new, matching, row_counts=dict.fromkeys(before.pins, 0))


def moved_pins(
    before: Snapshot, after: Snapshot, wanted: Filter | None = None
) -> Iterator[tuple[TablePin | None, TablePin | None]]:
    """The pins of the types whose tables are not the same at two points. Opens no table."""
    for old, new in pair_pins(before, after):
        is_same = old is not None and new is not None and old.place == new.place
        pin = new or old
        assert pin is not None, "a pair has a pin"
        if not is_same and (wanted is None or wanted.wants(pin)):
            yield old, new


def pair_pins(
    before: Snapshot, after: Snapshot
) -> Iterator[tuple[TablePin | None, TablePin | None]]:
    """The pins of each type at two points, by identity: those of the later one first."""
    olds = {(pin.key.kind, pin.identity.origin): pin for pin in before.pins.values()}
    for pin in after.pins.values():
        yield olds.pop((pin.key.kind, pin.identity.origin), None), pin
    for pin in olds.values():
        yield pin, None


def has_same_schema(before: Snapshot, after: Snapshot) -> bool:
    """Whether two points have the same types and properties.

    Schemas of the same meaning may have other properties of the same names: one was dropped, and
    then another one was added.
    """
    if before.schema_digest != after.schema_digest:
        return False
    return all(
        old is not None and new is not None and old.identity == new.identity
        for old, new in pair_pins(before, after)
    )


def measure_differences(sizes: Iterable[DataSize]) -> Iterator[Measure]:
    """How many rows and bytes differ in all; sizes are measured only when this is iterated."""
    total = sum(sizes, DataSize())
    yield Measure.of_count(total.row_count, CHANGES_LOCAL_ROWS_MAX, "changed row", is_estimate=True)
    yield Measure.of_bytes(total.byte_count, CHANGES_LOCAL_BYTES_MAX, "about {} of changed rows")
