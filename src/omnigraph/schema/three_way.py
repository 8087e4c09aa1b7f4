"""The merge of two schemas that changed since a base, by the identities of types and properties."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from omnigraph.lang.diagnostics import Severity
from omnigraph.model.identities import TypeIdentity, free_origin
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import ENDPOINTS, Catalog, Declaration, Embed, Interface
from omnigraph.schema.embeds import companion_name, manage
from omnigraph.schema.fact_texts import print_fact, print_unit
from omnigraph.schema.matching import Identities, Matching, match_by_identity, property_names
from omnigraph.schema.property_order import merge_orders
from omnigraph.schema.resolve import resolve
from omnigraph.schema.schema_conflicts import Decide, SchemaConflict, SideName
from omnigraph.schema.schema_facts import (
    Facet,
    FactKey,
    Facts,
    SchemaFacts,
    SchemaSide,
    Unit,
    declarations_of,
    facts_of,
)


@dataclass(frozen=True, slots=True)
class SchemaMerge:
    """The merged schema.

    Attributes:
        to_ours: What each type and property of the merged schema continues in ours.
        to_theirs: The same in theirs.
    """

    catalog: Catalog
    identities: Identities = field(hash=False)
    to_ours: Matching
    to_theirs: Matching


def _leave_open(conflict: SchemaConflict) -> None:  # noqa: ARG001
    return None


def merge_schemas(
    base: SchemaSide,
    ours: SchemaSide,
    theirs: SchemaSide,
    *,
    decide: Decide = _leave_open,
    used: Collection[tuple[SideName, Unit]] = (),
) -> SchemaMerge | tuple[SchemaConflict, ...]:
    """Combine what either side changed since the base, or return every conflict without a decision.

    Separate changes combine and equal changes are one. Sets of constraints merge by element. The
    order of properties never conflicts. The merged schema is the same whichever side is ours.

    Args:
        used: Types and properties of the base whose rows or values a side changed: the other side
            cannot drop them without a decision.
    """
    merge = _Merge(facts_of(base), facts_of(ours), facts_of(theirs), decide, frozenset(used))
    facts = merge.run()
    if merge.conflicts:
        return _sorted(merge.conflicts)
    declarations = tuple(map(manage, declarations_of(facts)))
    catalog, findings = resolve(declarations)
    if catalog is None:
        return _sorted(
            [
                _invalid(declarations[int(finding.path[0])], finding.message)
                for finding in findings
                if finding.code.severity is Severity.ERROR
            ]
        )
    identities = dict(_identities(catalog, facts, (base, ours, theirs)))
    return SchemaMerge(
        catalog,
        identities,
        to_ours=match_by_identity(ours.catalog, ours.identities, catalog, identities),
        to_theirs=match_by_identity(theirs.catalog, theirs.identities, catalog, identities),
    )


def _sorted(conflicts: list[SchemaConflict]) -> tuple[SchemaConflict, ...]:
    return tuple(
        sorted(
            dict.fromkeys(conflicts),
            key=lambda conflict: (
                conflict.declaration,
                conflict.property or "",
                conflict.facet,
                conflict.reason,
                conflict.base or "",
            ),
        )
    )


def _invalid(declaration: Declaration, message: str) -> SchemaConflict:
    kind = "interface" if isinstance(declaration, Interface) else declaration.table_key.kind
    reason = f"the merged schema would be invalid: {message}"
    return SchemaConflict(f"{kind}:{declaration.name}", None, Facet.VALIDITY, reason=reason)


def _identities(
    catalog: Catalog, facts: SchemaFacts, sides: tuple[SchemaSide, ...]
) -> Iterator[tuple[TableKey, TypeIdentity]]:
    """The identity of each merged type: no origin that a side knew is free again."""
    units = {(unit.kind, facts.name_of(unit)): unit for unit in facts.orders}
    for type_ in catalog.types:
        key = type_.table_key
        unit = units[key.kind, type_.name]
        origins = {
            str(facts.name_of(unit.property_unit(origin))): origin for origin in facts.orders[unit]
        }
        known = set(_known_origins(unit, sides))
        # A type of one side can inherit a property that the other side added to its interface.
        for name in property_names(type_):
            if name not in origins:
                origins[name] = free_origin(name, {*known, *origins.values()})
        dropped = tuple(sorted(known - set(origins.values())))
        names = {name: origins[name] for name in sorted(origins) if origins[name] != name}
        yield key, TypeIdentity(unit.origin, names, dropped)


def _known_origins(unit: Unit, sides: tuple[SchemaSide, ...]) -> Iterator[str]:
    for side in sides:
        for type_ in side.catalog.types:
            identity = side.identities[type_.table_key]
            if (type_.table_key.kind, identity.origin) == (unit.kind, unit.origin):
                yield from identity.dropped
                yield from identity.origins(property_names(type_))


_NO_FACTS: Final[Facts] = {}

_OF_THE_TYPE: Final = frozenset(
    {Facet.DEFAULT, Facet.EMBED, Facet.INDEX, Facet.RANGE, Facet.CHECK, Facet.LENGTH}
)
"""What only makes sense for values of the type that it was declared with."""


@dataclass(slots=True)
class _Merge:
    """The merge of three sets of facts: presence first, then the facts of what is present."""

    base: SchemaFacts
    ours: SchemaFacts
    theirs: SchemaFacts
    decide: Decide
    used: frozenset[tuple[SideName, Unit]]
    conflicts: list[SchemaConflict] = field(default_factory=list)

    def run(self) -> SchemaFacts:
        units: dict[Unit, dict[FactKey, object]] = {}
        for unit in sorted({*self.ours.units, *self.theirs.units}, key=_unit_order):
            # Declarations are in front of their properties, and decide for them.
            if unit.property_origin is not None and unit.owner not in units:
                continue
            if (facts := self._unit(unit)) is not None:
                units[unit] = facts
        orders = {unit: self._order(unit, units) for unit in units if unit.property_origin is None}
        merged = SchemaFacts(units, orders)
        for unit in orders:
            self._drop_references(merged, unit, units)
            orders[unit] = self._drop_notes(merged, unit, units)
        self._report_clashes(merged)
        _drop_wrong_hints(merged, units)
        return merged

    def _unit(self, unit: Unit) -> dict[FactKey, object] | None:
        """The merged facts of a unit, or None if it is not part of the merged schema."""
        base = self.base.units.get(unit)
        ours, theirs = self.ours.units.get(unit), self.theirs.units.get(unit)
        if ours is not None and theirs is not None:
            return self._combine(base or _NO_FACTS, ours, theirs)
        present = ours if ours is not None else theirs
        assert present is not None, "only units of the two sides are merged"
        if base is None or self._has_owner_of_one_side(unit):
            return dict(present)
        side: SideName = "ours" if ours is not None else "theirs"
        facts = self.ours if side == "ours" else self.theirs
        if (side, unit) not in self.used and not self._is_changed(unit, facts):
            return None
        conflict = SchemaConflict(
            *self._place(unit),
            Facet.PRESENCE,
            print_unit(self.base, unit),
            print_unit(self.ours, unit) if side == "ours" else None,
            print_unit(self.theirs, unit) if side == "theirs" else None,
        )
        # While it is open, its absence must not make further conflicts.
        return dict(present) if self._choice(conflict) in (side, None) else None

    def _has_owner_of_one_side(self, unit: Unit) -> bool:
        """Whether a property is part of a type that is kept though one side dropped it."""
        in_both = unit.owner in self.ours.units and unit.owner in self.theirs.units
        return unit.property_origin is not None and not in_both

    def _combine(self, base: Facts, ours: Facts, theirs: Facts) -> dict[FactKey, object]:
        merged: dict[FactKey, object] = {}
        # The side whose type was chosen for a property, if both changed it.
        chosen: SideName | None = None
        for key in sorted({**ours, **theirs}, key=lambda key: key.facet is not Facet.TYPE):
            before, left, right = base.get(key), ours.get(key), theirs.get(key)
            if chosen is not None and key.facet in _OF_THE_TYPE:
                value = left if chosen == "ours" else right
            elif _same(left, right) or _same(before, right):
                value = left
            elif _same(before, left):
                value = right
            elif key.facet is Facet.HINT:
                continue
            else:
                choice = self._choice(self._conflict(key)) or "theirs"
                value = left if choice == "ours" else right
                chosen = choice if key.facet is Facet.TYPE else chosen
            if value is not None:
                merged[key] = value
        return merged

    def _choice(self, conflict: SchemaConflict) -> SideName | None:
        choice = self.decide(conflict)
        if choice is None:
            self.conflicts.append(conflict)
        return choice

    def _conflict(self, key: FactKey) -> SchemaConflict:
        return SchemaConflict(
            *self._place(key.unit),
            key.facet,
            print_fact(self.base, key),
            print_fact(self.ours, key),
            print_fact(self.theirs, key),
        )

    def _place(self, unit: Unit) -> tuple[str, str | None]:
        """The names of a declaration and a property in the base, or in the sides."""
        declaration = f"{unit.kind}:{self._name(unit.owner)}"
        return declaration, None if unit.property_origin is None else self._name(unit)

    def _name(self, unit: Unit) -> str:
        if name := self.base.name_of(unit):
            return name
        return min(filter(None, (self.ours.name_of(unit), self.theirs.name_of(unit))))

    def _is_changed(self, unit: Unit, side: SchemaFacts) -> bool:
        """Whether a side changed a unit, or began to rely on it, since the base."""
        if unit.property_origin is not None:
            return self._has_changed_facts(unit, side) or self._has_new_use(unit, side)
        parts = [part for part in {*self.base.units, *side.units} if part.owner == unit]
        return any(self._has_changed_facts(part, side) for part in parts) or any(
            self._has_changed_facts(part, side)
            for other in side.orders
            if _refers_to(side, other, unit)
            for part in {*self.base.units, *side.units}
            if part.owner == other
        )

    def _has_changed_facts(self, unit: Unit, side: SchemaFacts) -> bool:
        before, after = self.base.units.get(unit), side.units.get(unit)
        if before is None or after is None:
            return before is not after
        keys = {key for key in {**before, **after} if key.facet is not Facet.HINT}
        return any(not _same(before.get(key), after.get(key)) for key in keys)

    def _has_new_use(self, unit: Unit, side: SchemaFacts) -> bool:
        """Whether a constraint or an embedding of the side names a property, and is new."""
        for part, facts in side.units.items():
            if part.owner != unit.owner:
                continue
            before = self.base.units.get(part, _NO_FACTS)
            for key, value in facts.items():
                uses = unit.property_origin in _origins_in(key, value)
                if uses and not _same(before.get(key), value):
                    return True
        return False

    def _order(self, unit: Unit, units: Mapping[Unit, Facts]) -> tuple[str, ...]:
        present = {part.property_origin for part in units if part.owner == unit}
        orders = [
            tuple(origin for origin in side.orders.get(unit, ()) if origin in present)
            for side in (self.base, self.ours, self.theirs)
        ]
        return merge_orders(*orders)

    def _drop_references(
        self, merged: SchemaFacts, unit: Unit, units: dict[Unit, dict[FactKey, object]]
    ) -> None:
        """Remove what names a property or an interface that was decided to be dropped."""
        known = {*merged.orders[unit], *ENDPOINTS}
        for part in (unit, *map(unit.property_unit, merged.orders[unit])):
            for key, value in list(units[part].items()):
                if key.facet is Facet.ENDS:
                    self._require_ends(merged, key, value)
                elif key.facet is Facet.IMPLEMENTS:
                    if Unit("interface", str(key.element)) not in units:
                        del units[part][key]
                elif not known.issuperset(_origins_in(key, value)):
                    del units[part][key]
                    if key.facet is Facet.KEY:
                        units[part][key] = self._remaining_key(key, merged.orders[unit])

    def _drop_notes(
        self, merged: SchemaFacts, unit: Unit, units: dict[Unit, dict[FactKey, object]]
    ) -> tuple[str, ...]:
        """Remove notes of vectors that are not embedded any more, or from other texts than before.

        Returns the origins that stay. A vector that is embedded gets a new companion then, and all
        of its rows are stale (docs/decisions/0020).
        """
        stays = merged.orders[unit]
        for part in map(unit.property_unit, merged.orders[unit]):
            key = FactKey(part, Facet.EMBED)
            sides = (self.base, self.ours, self.theirs)
            if part.property_origin not in stays:
                continue
            if not any(key in side.units.get(part, {}) for side in sides):
                continue
            companion = companion_name(str(merged.name_of(part)))
            for note in [unit.property_unit(origin) for origin in stays]:
                if merged.name_of(note) != companion:
                    continue
                if key not in units[part] or not self._is_kept_up(note, key, units[part][key]):
                    del units[note]
                    stays = tuple(origin for origin in stays if origin != note.property_origin)
        return stays

    def _is_kept_up(self, note: Unit, key: FactKey, embed: object) -> bool:
        """Whether all sides that have a note have it about the texts that are embedded now."""
        before = [
            side.units.get(key.unit, _NO_FACTS).get(key)
            for side in (self.ours, self.theirs)
            if note in side.units
        ]
        return all(_origins_in(key, value) == _origins_in(key, embed) for value in before)

    def _remaining_key(self, key: FactKey, present: tuple[str, ...]) -> object:
        """The key of the side that dropped a member of the other one's."""
        keys = [side.units.get(key.unit, _NO_FACTS).get(key) for side in (self.ours, self.theirs)]
        known = {*present, *ENDPOINTS}
        fitting = [value for value in keys if known.issuperset(_origins_in(key, value))]
        return fitting[0] if len(fitting) == 1 else ()

    def _require_ends(self, merged: SchemaFacts, key: FactKey, value: object) -> None:
        assert isinstance(value, tuple), "an edge has two ends"
        for origin in dict.fromkeys(value):
            node = Unit("node", origin)
            if node not in merged.units:
                reason = f"it joins node {self._name(node)}, which the other side dropped"
                place = self._place(key.unit)
                self.conflicts.append(SchemaConflict(*place, Facet.ENDS, reason=reason))

    def _report_clashes(self, merged: SchemaFacts) -> None:
        """Two identities of one name, which only the owner of a branch can rename."""
        names: dict[tuple[object, ...], list[Unit]] = {}
        for unit in merged.units:
            name = str(merged.name_of(unit))
            if unit.property_origin is not None:
                names.setdefault((unit.owner, name.casefold()), []).append(unit)
                continue
            names.setdefault((name,), []).append(unit)
            if unit.kind == "edge":
                names.setdefault(("edge", name.casefold()), []).append(unit)
        for units in names.values():
            if len(units) > 1:
                first = min(units)
                called = sorted({str(merged.name_of(unit)) for unit in units})
                origins = sorted(
                    unit.property_origin or f"{unit.kind} {unit.origin}" for unit in units
                )
                reason = (
                    f"{' and '.join(origins)} would be called {' and '.join(called)}: "
                    "rename one of them on its branch"
                )
                place = self._place(first)
                self.conflicts.append(SchemaConflict(*place, Facet.NAME, reason=reason))


def _unit_order(unit: Unit) -> tuple[str, str, bool, str]:
    return unit.kind, unit.origin, unit.property_origin is not None, unit.property_origin or ""


def _same(left: object, right: object) -> bool:
    """Whether two values of a fact are equal, and of one type: 1, 1.0 and true are not."""
    return left == right and repr(left) == repr(right)


def _refers_to(side: SchemaFacts, other: Unit, unit: Unit) -> bool:
    """Whether an edge type joins a node type, or a node type implements an interface."""
    facts = side.units[other]
    if unit.kind == "node":
        ends = facts.get(FactKey(other, Facet.ENDS), ())
        return isinstance(ends, tuple) and unit.origin in ends
    return FactKey(other, Facet.IMPLEMENTS, unit.origin) in facts


def _origins_in(key: FactKey, value: object) -> tuple[str, ...]:
    """The properties of the same declaration that a fact names."""
    match key.facet, value, key.element:
        case Facet.KEY, tuple(), _:
            return value
        case Facet.UNIQUE, _, frozenset() as members:
            return tuple(members)
        case Facet.EMBED, Embed(sources, _), _:
            return sources
        case _:
            return ()


def _drop_wrong_hints(merged: SchemaFacts, units: dict[Unit, dict[FactKey, object]]) -> None:
    """Remove hints that a merge made wrong: they describe an earlier change, and nothing else."""
    claims: dict[tuple[object, ...], list[Unit]] = {}
    for unit, facts in units.items():
        former = facts.get(FactKey(unit, Facet.HINT))
        if former is not None:
            scope = unit.kind if unit.property_origin is None else unit.owner
            claims.setdefault((scope, former), []).append(unit)
    for (_, former), claimants in claims.items():
        for unit in claimants:
            if len(claimants) > 1 or merged.name_of(unit) == former:
                del units[unit][FactKey(unit, Facet.HINT)]
