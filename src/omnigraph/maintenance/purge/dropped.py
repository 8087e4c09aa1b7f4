"""What was dropped: the types and properties that a branch had once and has no more.

They are known by their identities (docs/decisions/0012), and the files that hold their values by
the numbers of columns: nothing is read but metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self, TypeAlias

from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.tables import TablePin
from omnigraph.schema.catalog import RESERVED_NAMES
from omnigraph.schema.plan import SchemaPlan
from omnigraph.storage.dropped_columns import StoredValues, stored_values
from omnigraph.storage.tables import Table, Tables


@dataclass(frozen=True, slots=True)
class Drop:
    """A type that was dropped, or a property of a type that is still there.

    Attributes:
        location: The table of the type.
        type_name: The last name of the type that is known, and `name` that of the property.
        origin: The origin of the property; None for a type.
    """

    location: str
    type_name: str
    origin: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        return self.type_name if self.name is None else f"{self.type_name}.{self.name}"


@dataclass(frozen=True, slots=True)
class DropSet:
    """What is purged together."""

    every: tuple[Drop, ...]

    def __str__(self) -> str:
        return ", ".join(sorted(map(str, self.every)))

    @property
    def locations(self) -> frozenset[str]:
        """The tables that held values of it."""
        return frozenset(dropped.location for dropped in self.every)

    def find(self, pin: TablePin, column: str) -> Drop | None:
        """What a column of a pinned table is purged for; None if it is not."""
        return self.of(pin.location, _origin(pin, column))

    def of(self, location: str, origin: str | None) -> Drop | None:
        """What the values of a property are purged for; None if they are not.

        Args:
            origin: The origin of the property; None for a column that every type has.
        """
        among = (each for each in self.every if each.location == location)
        return next((each for each in among if each.origin in (None, origin)), None)

    def renamed(self, names: Mapping[Drop, tuple[str, str | None]]) -> DropSet:
        """The same under the names that they had last."""
        every = (
            replace(each, type_name=names[each][0], name=names[each][1]) if each in names else each
            for each in self.every
        )
        return DropSet(tuple(every))


def _origin(pin: TablePin, column: str) -> str | None:
    return None if column in RESERVED_NAMES else pin.identity.origin_of(column)


Owners: TypeAlias = "dict[tuple[str, int | None], str | None]"
"""By file and number, the origin of the property that the values are of."""


@dataclass(frozen=True, slots=True)
class HeldValues:
    """Which files hold what is purged.

    Attributes:
        dropped: What is purged.
        owners: What values are of, as the commits know that still have the columns.
    """

    dropped: DropSet
    tables: Tables
    owners: Owners = field(default_factory=dict)

    @classmethod
    def read(cls, dropped: DropSet, tables: Tables, pins: Iterable[TablePin]) -> Self:
        """Learn from pins of all commits what the values in files are of."""
        held = cls(dropped, tables)
        for pin in pins:
            for values in stored_values(tables.open_pin(pin)):
                if values.column is not None:
                    held.owners[values.file, values.number] = _origin(pin, values.column)
        return held

    def files_of(self, pin: TablePin) -> frozenset[str]:
        """The names of the files of a pinned table that hold what is purged."""
        values = stored_values(self.tables.open_pin(pin))
        return frozenset(each.file for each in values if self._is_dropped(pin, each))

    def has_columns(self, pin: TablePin, table: Table) -> bool:
        """Whether a pinned table still has a column that is purged."""
        return any(self.dropped.find(pin, column) for column in table.schema.names)

    def _is_dropped(self, pin: TablePin, values: StoredValues) -> bool:
        place = (values.file, values.number)
        if values.column is not None or place in self.owners:
            origin = self.owners[place]
            return self.dropped.of(pin.location, origin) is not None
        # No commit that can be read has the column: it may have been any that was dropped.
        gone = (self.dropped.of(pin.location, origin) for origin in pin.identity.dropped)
        return any(gone)


def find_dropped(snapshot: Snapshot, plan: SchemaPlan | None = None) -> DropSet:
    """What a branch has dropped until now, and what it drops by a schema change.

    Args:
        plan: The change.
    """
    return DropSet(tuple(dict.fromkeys((*_dropped_until(snapshot), *_drops(snapshot, plan)))))


def _dropped_until(snapshot: Snapshot) -> Iterator[Drop]:
    for tombstone in snapshot.tombstones:
        yield Drop(tombstone.location, tombstone.key.type_name)
    for pin in snapshot.pins.values():
        for origin in pin.identity.dropped:
            yield Drop(pin.location, pin.key.type_name, origin, origin)


def _drops(snapshot: Snapshot, plan: SchemaPlan | None) -> Iterator[Drop]:
    if plan is None:
        return
    for type_ in plan.matching.dropped_types(plan.old):
        yield Drop(snapshot.pin(type_.table_key).location, type_.name)
    for key, old_key in plan.matching.types.items():
        pin, old = snapshot.pin(old_key), plan.old.type_of(old_key)
        for property_ in plan.matching.dropped_properties(old, plan.new.type_of(key)):
            origin = pin.identity.origin_of(property_.name)
            yield Drop(pin.location, old.name, origin, property_.name)
