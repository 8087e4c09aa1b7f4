"""Hints of renames: matches a new schema with an old one by names and `@rename_from`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from omnigraph.choices import TableKind
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property, SchemaType
from omnigraph.schema.change_codes import ChangeCode, ChangeFinding
from omnigraph.schema.embeds import is_companion, match_companions
from omnigraph.schema.matching import Matching, property_names


def match_by_hints(old: Catalog, new: Catalog) -> tuple[Matching, tuple[ChangeFinding, ...]]:
    """Match types and properties by their names and by the hints of the new schema.

    `@rename_from("Old")` continues `Old` where the new name did not exist before; where it did,
    the hint has no effect. That two declarations claim one former name is refused by the rules of
    a catalog already. The findings have every wrong hint, and warnings.
    """
    matcher = _HintMatcher(old, new)
    return matcher.match(), tuple(matcher.findings)


@dataclass(slots=True)
class _HintMatcher:
    old: Catalog
    new: Catalog
    findings: list[ChangeFinding] = field(default_factory=list)

    def match(self) -> Matching:
        types = dict(self._match_types())
        properties = {
            key: match_companions(
                self.new.type_of(key),
                self.old.type_of(before),
                dict(self._match_properties(self.new.type_of(key), self.old.type_of(before))),
            )
            for key, before in types.items()
        }
        matching = Matching(types, properties)
        assert len(set(types.values())) == len(types), "a catalog claims no former name twice"
        for type_ in matching.new_types(self.new):
            self._refuse_hints_of_new(type_, matching)
        self._warn_of_inherited_hints(matching)
        self._warn_of_likely_renames(matching)
        return matching

    def _match_types(self) -> Iterator[tuple[TableKey, TableKey]]:
        before = {type_.table_key for type_ in self.old.types}
        for type_ in self.new.types:
            key, former = type_.table_key, type_.rename_from
            if key in before:
                if former is not None and not self._refuse_cycle(
                    type_, None, _hints(self.new.types)
                ):
                    self._warn_of_unused_hint(type_, None, former, gone=self._is_dropped(former))
                yield key, key
            elif former is not None and self._accept_type_hint(type_, former):
                yield key, self.old.type_named(former).table_key

    def _is_dropped(self, name: str) -> bool:
        return name in _declared_names(self.old) and name not in _declared_names(self.new)

    def _accept_type_hint(self, type_: SchemaType, former: str) -> bool:
        kind = type_.table_key.kind
        hint = f'{kind} {type_.name} has @rename_from("{former}")'
        before = _declared_names(self.old)
        if former not in before:
            message = f"{hint}, and the present schema has no {kind} type {former}"
            same_kind = (name for name, word in before.items() if word == kind)
            way = did_you_mean(former, same_kind, otherwise="remove the hint")
            self._report(ChangeCode.UNKNOWN_FORMER_NAME, type_, None, message, way)
        elif before[former] != kind:
            message = f"{hint}, but {former} is {_with_article(before[former])}"
            way = f"remove the hint: {type_.name} is a new type, and {former} is dropped"
            self._report(ChangeCode.FORMER_NAME_OF_OTHER_KIND, type_, None, message, way)
        elif former in _declared_names(self.new):
            message = f"{hint}, but the new schema still declares {former}"
            way = f"remove the hint, or {former}; a chain of renames takes one change for each"
            self._report(ChangeCode.FORMER_NAME_IN_USE, type_, None, message, way)
        else:
            return True
        return False

    def _match_properties(self, new: SchemaType, old: SchemaType) -> Iterator[tuple[str, str]]:
        before, after = property_names(old), property_names(new)
        for property_ in new.properties:
            name, former = property_.name, property_.rename_from
            if name in before:
                if former is not None and not self._refuse_cycle(new, name, _hints(new.properties)):
                    gone = former in before and former not in after
                    self._warn_of_unused_hint(new, name, former, gone=gone)
                yield name, name
            elif former is not None and self._accept_property_hint(new, old, name, former):
                yield name, former

    def _refuse_cycle(self, type_: SchemaType, name: str | None, hints: Mapping[str, str]) -> bool:
        """Refuse names that are exchanged: names alone do not say whether they have been already.

        Whoever applies the same file again would change them back.
        """
        first = name or type_.name
        cycle = [first]
        while (former := hints.get(cycle[-1])) not in (None, *cycle):
            assert former is not None, "it was found"
            cycle.append(former)
        if former != first:
            return False
        if first == min(cycle):
            label = ", ".join(f"{type_.name}.{each}" if name else each for each in cycle)
            message = f"{label} take each other's names; applied twice, that would undo itself"
            way = f"rename {first} to a name that is free, then the others, then that, one by one"
            self._report(ChangeCode.FORMER_NAME_IN_USE, type_, name, message, way)
        return True

    def _accept_property_hint(
        self, new: SchemaType, old: SchemaType, name: str, former: str
    ) -> bool:
        hint = f'{new.name}.{name} has @rename_from("{former}")'
        before = property_names(old)
        if former in property_names(new):
            message = f"{hint}, but the new schema still declares {new.name}.{former}"
            way = f"remove the hint, or {former}; a chain of renames takes one change for each"
            self._report(ChangeCode.FORMER_NAME_IN_USE, new, name, message, way)
        elif former in before:
            return True
        elif not self._is_inherited(new, name, former):
            message = f"{hint}, and {old.name} has no property {former} in the present schema"
            way = did_you_mean(former, before, otherwise="remove the hint")
            self._report(ChangeCode.UNKNOWN_FORMER_NAME, new, name, message, way)
        return False

    def _is_inherited(self, type_: SchemaType, name: str, former: str) -> bool:
        return bool(self._interfaces_with(type_, name, former))

    def _interfaces_with(self, type_: SchemaType, name: str, former: str) -> tuple[str, ...]:
        """The interfaces of a type that have the property, with the same hint."""
        if not isinstance(type_, NodeType):
            return ()
        return tuple(
            interface
            for interface in type_.implements
            for property_ in self.new.interface(interface).properties
            if (property_.name, property_.rename_from) == (name, former)
        )

    def _refuse_hints_of_new(self, type_: SchemaType, matching: Matching) -> None:
        # A wrong hint of the type has been reported; those of its properties follow from it.
        if type_.rename_from is not None:
            return
        for property_ in type_.properties:
            former = property_.rename_from
            if former is None or self._is_inherited(type_, property_.name, former):
                continue
            message = (
                f'{type_.name}.{property_.name} has @rename_from("{former}"), '
                f"but {type_.name} is a new type"
            )
            dropped = [dropped.name for dropped in matching.dropped_types(self.old)]
            hint = did_you_mean(type_.name, dropped, otherwise="remove the hint")
            self._report(ChangeCode.UNKNOWN_FORMER_NAME, type_, property_.name, message, hint)

    def _warn_of_inherited_hints(self, matching: Matching) -> None:
        """Hints that an interface gives to several types are wrong if they suit none of them."""
        unused: list[tuple[SchemaType, str, str, tuple[str, ...]]] = []
        used: set[tuple[str, str]] = set()
        for type_ in self.new.types:
            before = matching.names_before(type_)
            for property_ in type_.properties:
                name, former = property_.name, property_.rename_from
                if former is None or former in property_names(type_):
                    continue
                interfaces = self._interfaces_with(type_, name, former)
                if before[name] is None:
                    unused += [(type_, name, former, interfaces)] if interfaces else []
                else:
                    used.update((interface, name) for interface in interfaces)
        for type_, name, former, interfaces in unused:
            hint = f'{type_.name}.{name} has @rename_from("{former}") from {interfaces[0]}'
            if any((interface, name) in used for interface in interfaces):
                message = f"{hint}, and had no {former}; it is a new property"
                self._report(ChangeCode.HINT_OF_INTERFACE, type_, name, message)
            else:
                message = f"{hint}, and no type that implements it has a property {former}"
                known = {
                    property_.name for node in self.old.node_types for property_ in node.properties
                }
                self._report(
                    ChangeCode.UNKNOWN_FORMER_NAME,
                    type_,
                    name,
                    message,
                    did_you_mean(former, sorted(known), otherwise="remove the hint"),
                )

    def _warn_of_unused_hint(
        self, type_: SchemaType, name: str | None, former: str, *, gone: bool
    ) -> None:
        label = f"{type_.name}.{name}" if name else type_.name
        message = f'{label} has @rename_from("{former}") and exists already: the hint has no effect'
        if gone:
            message += f", and {former} is dropped"
        self._report(ChangeCode.HINT_WITHOUT_USE, type_, name, message, "remove the hint")

    def _warn_of_likely_renames(self, matching: Matching) -> None:
        for kind in TableKind:
            old = [type_ for type_ in matching.dropped_types(self.old) if _kind(type_) is kind]
            added = [type_ for type_ in matching.new_types(self.new) if _kind(type_) is kind]
            if len(old) == len(added) == 1 and _shape(old[0]) == _shape(added[0]) != set():
                self._warn_of_likely_rename(added[0], None, old[0].name)
        for key, before in matching.types.items():
            new = self.new.type_of(key)
            old_type = self.old.type_of(before)
            dropped = [
                property_
                for property_ in matching.dropped_properties(old_type, new)
                if not is_companion(old_type, property_.name)
            ]
            names = matching.names_before(new)
            extra = [
                property_
                for property_ in new.properties
                if names[property_.name] is None and not is_companion(new, property_.name)
            ]
            if len(dropped) == len(extra) == 1 and dropped[0].type == extra[0].type:
                self._warn_of_likely_rename(new, extra[0].name, dropped[0].name)

    def _warn_of_likely_rename(self, type_: SchemaType, name: str | None, former: str) -> None:
        reported = {(finding.type_name, finding.property_name) for finding in self.findings}
        if (type_.name, name) in reported:
            return
        added, dropped = (f"{type_.name}.{name}", f"{type_.name}.{former}")
        if name is None:
            added, dropped = type_.name, former
        message = f"{dropped} is dropped and {added} is added, without the values"
        hint = f'a rename is @rename_from("{former}") on {name or type_.name}'
        self._report(ChangeCode.LIKELY_RENAME, type_, name, message, hint)

    def _report(
        self, code: ChangeCode, type_: SchemaType, name: str | None, message: str, hint: str = ""
    ) -> None:
        self.findings.append(ChangeFinding(code, type_.name, name, message, hint))


def _hints(declarations: Iterable[SchemaType] | Iterable[Property]) -> dict[str, str]:
    """By name, the former name that a hint claims."""
    return {each.name: each.rename_from for each in declarations if each.rename_from is not None}


def _declared_names(catalog: Catalog) -> dict[str, str]:
    """By the name of each declaration, its kind."""
    kinds = {interface.name: "interface" for interface in catalog.interfaces}
    return kinds | {type_.name: str(type_.table_key.kind) for type_ in catalog.types}


def _with_article(kind: str) -> str:
    return "a node type" if kind == "node" else f"an {kind}"


def _kind(type_: SchemaType) -> TableKind:
    return type_.table_key.kind


def _shape(type_: SchemaType) -> set[tuple[str, str]]:
    shape = {(property_.name, str(property_.type)) for property_ in type_.properties}
    if isinstance(type_, EdgeType):
        shape |= {("src", type_.source), ("dst", type_.target)}
    return shape
