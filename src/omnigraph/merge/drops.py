"""What one side dropped and the other side still changed: rows of a type, values of a property.

To drop something is to change the schema alone, so the schemas do not say whether the other side
went on to use it. Only the rows of types and properties that exactly one side dropped are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from omnigraph.changes.graphs import Side
from omnigraph.changes.lifts import Lift, LiftPair
from omnigraph.changes.records import TableChanges
from omnigraph.changes.tables import compare_rows, compare_tables
from omnigraph.engine.protocol import Engine
from omnigraph.model.tables import TablePin
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.schema_conflicts import SideName
from omnigraph.schema.schema_facts import Unit


@dataclass(frozen=True, slots=True)
class DroppedUnits:
    """Finds what was dropped on one side only, and used on the other.

    Attributes:
        base: The commit that both sides come from.
    """

    base: Side
    ours: Side
    theirs: Side
    find_catalog: Callable[[str], Catalog]
    engine: Engine

    def used(self) -> frozenset[tuple[SideName, Unit]]:
        """The types whose rows a side changed, and the properties whose values it changed."""
        return frozenset(self._used())

    def _used(self) -> Iterator[tuple[SideName, Unit]]:
        ours, theirs = (_pins_by_unit(side) for side in (self.ours, self.theirs))
        for unit, before in _pins_by_unit(self.base).items():
            own, other = ours.get(unit), theirs.get(unit)
            if own is not None and other is not None:
                yield from self._used_properties("ours", unit, before, own, other)
                yield from self._used_properties("theirs", unit, before, other, own)
            elif own is not None:
                if self._changes(before, self.ours, own).counts:
                    yield "ours", unit
            elif other is not None and self._changes(before, self.theirs, other).counts:
                yield "theirs", unit

    def _used_properties(
        self, name: SideName, unit: Unit, before: TablePin, after: TablePin, other: TablePin
    ) -> Iterator[tuple[SideName, Unit]]:
        """The properties of the base that the other side dropped, and this one changed."""
        side = self.ours if name == "ours" else self.theirs
        dropped = set(other.identity.dropped) - set(before.identity.dropped)
        type_ = self.find_catalog(side.snapshot.schema_digest).type_of(after.key)
        names = [
            (own.name, after.identity.origin_of(own.name))
            for own in type_.properties
            if after.identity.origin_of(own.name) in dropped
        ]
        if not names or before.place == after.place:
            return
        changes = self._changes(before, side, after)
        for column, origin in names:
            old, new = (rows.select(["id", column]) for rows in (changes.before, changes.after))
            if compare_rows(type_, old, new, self.engine, side.data).counts.updated:
                yield name, unit.property_unit(origin)

    def _changes(self, before: TablePin, side: Side, after: TablePin) -> TableChanges:
        """What a side changed in a table since the base, as rows of that side's type."""
        types = (
            self.find_catalog(point.snapshot.schema_digest).type_of(pin.key)
            for point, pin in ((self.base, before), (side, after))
        )
        old, type_ = types
        lift = Lift.between(old, before.identity, wanted=type_, wanted_identity=after.identity)
        tables = self.base.data.table(before.key), side.data.table(after.key)
        lifts = LiftPair(lift, Lift.identity(type_))
        return compare_tables(type_, *tables, self.engine, side.data, lifts=lifts)


def _pins_by_unit(side: Side) -> dict[Unit, TablePin]:
    return {
        Unit(str(pin.key.kind), pin.identity.origin): pin for pin in side.snapshot.pins.values()
    }
