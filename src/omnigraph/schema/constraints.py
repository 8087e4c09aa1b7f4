"""Rules about constraints: which properties a key, unique, index, range, check or length names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.model.types import LENGTH_MAX, BlobType, ListType, PropertyType, Scalar, VectorType
from omnigraph.schema.catalog import (
    ENDPOINTS,
    Check,
    Declaration,
    EdgeType,
    Interface,
    Length,
    Property,
    Range,
    Value,
)
from omnigraph.schema.findings import Finding, Path, SchemaCode, repeated_positions
from omnigraph.schema.indexes import index_kind, takes_options
from omnigraph.schema.patterns import pattern_fault
from omnigraph.schema.values import Misfit, fit

Columns = Mapping[str, Property]


def constraint_findings(at: Path, owner: Declaration, columns: Columns) -> Iterator[Finding]:
    """Rules that a declaration's constraints break, given every property it will have."""
    yield from _key_findings((*at, "key"), owner, columns)
    for position, members in enumerate(owner.uniques):
        yield from _unique_findings((*at, "uniques", position), owner, members, columns)
    yield from _repetition_findings(
        (*at, "uniques"), owner, "@unique", [frozenset(members) for members in owner.uniques]
    )
    yield from _index_findings((*at, "indexes"), owner, columns)
    if isinstance(owner, Interface):
        yield from _interface_findings(at, owner)
        return
    for position, range_ in enumerate(owner.ranges):
        yield from _range_findings((*at, "ranges", position), owner, range_, columns)
    yield from _repetition_findings(
        (*at, "ranges"), owner, "@range", [range_.property for range_ in owner.ranges]
    )
    for position, check in enumerate(owner.checks):
        yield from _check_findings((*at, "checks", position), owner, check, columns)
    yield from _repetition_findings((*at, "checks"), owner, "@check", owner.checks)
    for position, length in enumerate(owner.lengths):
        yield from _length_findings((*at, "lengths", position), owner, length, columns)
    yield from _repetition_findings(
        (*at, "lengths"), owner, "@length", [length.property for length in owner.lengths]
    )


def _key_findings(at: Path, owner: Declaration, columns: Columns) -> Iterator[Finding]:
    yield from _repeated_member_findings(at, owner, "@key", owner.key)
    for position, name in enumerate(owner.key):
        place: Path = (*at, position)
        if isinstance(owner, EdgeType) and name in ENDPOINTS:
            continue
        member = columns.get(name)
        if member is None:
            yield _unknown_property(place, owner, "@key", name, columns)
        elif member.nullable:
            message = f"{owner.name}: key member {name} may be null"
            hint = "remove the '?', or leave it out of the key"
            yield Finding(SchemaCode.KEY_MEMBER, place, message, hint)
        elif _is_opaque(member.type):
            message = f"{owner.name}: key member {name} is {member.type}"
            hint = "a key needs scalars or enums"
            yield Finding(SchemaCode.KEY_MEMBER, place, message, hint)


def _unique_findings(
    at: Path, owner: Declaration, members: tuple[str, ...], columns: Columns
) -> Iterator[Finding]:
    if not members:
        message = f"{owner.name}: @unique names no property"
        yield Finding(SchemaCode.CONSTRAINT_ARGUMENTS, at, message)
    yield from _repeated_member_findings(at, owner, "@unique", members)
    for position, name in enumerate(members):
        place: Path = (*at, position)
        if isinstance(owner, EdgeType) and name in ENDPOINTS:
            continue
        member = columns.get(name)
        if member is None:
            yield _unknown_property(place, owner, "@unique", name, columns)
        elif _is_opaque(member.type):
            message = f"{owner.name}: unique member {name} is {member.type}"
            yield Finding(SchemaCode.UNIQUE_MEMBER, place, message, "name scalars or enums")


def _index_findings(at: Path, owner: Declaration, columns: Columns) -> Iterator[Finding]:
    yield from _repetition_findings(
        at, owner, "@index", [index.property for index in owner.indexes]
    )
    for position, index in enumerate(owner.indexes):
        place: Path = (*at, position)
        name = index.property
        member = columns.get(name)
        if isinstance(owner, EdgeType) and name in ENDPOINTS:
            message = f"{owner.name}: {name} needs no @index, because every edge type has one on it"
            yield Finding(SchemaCode.INDEX_MEMBER, place, message, f"leave {name} out")
        elif member is None:
            yield _unknown_property(place, owner, "@index", name, columns)
        elif index_kind(member.type) is None:
            message = f"{owner.name}: {name} is {member.type}, which cannot be indexed"
            hint = "index scalars, enums and Vectors"
            yield Finding(SchemaCode.INDEX_MEMBER, place, message, hint)
        elif index.options is not None and not takes_options(member.type, index.options):
            message = f"{owner.name}: {name} is {member.type}, whose index has no such options"
            hint = "analyzer and positions are for a String, kind and metric for a Vector"
            yield Finding(SchemaCode.INDEX_OPTIONS, (*place, "options"), message, hint)


def _interface_findings(at: Path, owner: Interface) -> Iterator[Finding]:
    for name, constraints in (("key", (owner.key,)), ("uniques", owner.uniques)):
        if any(len(members) > 1 for members in constraints):
            message = f"interface {owner.name}: a constraint names one property"
            hint = "state it in the node types"
            yield Finding(SchemaCode.CONSTRAINT_ARGUMENTS, (*at, name), message, hint)


def _range_findings(
    at: Path, owner: Declaration, range_: Range, columns: Columns
) -> Iterator[Finding]:
    member = columns.get(range_.property)
    if member is None:
        yield _unknown_property((*at, "property"), owner, "@range", range_.property, columns)
        return
    label = f"{owner.name}: the range of {range_.property}"
    if not isinstance(member.type, Scalar) or not (
        member.type.is_numeric or member.type.is_temporal
    ):
        message = f"{label} needs a number, a Date or a DateTime, not {member.type}"
        yield Finding(SchemaCode.RANGE_MEMBER, (*at, "property"), message)
        return
    if range_.low is None and range_.high is None:
        yield Finding(SchemaCode.RANGE_BOUNDS, at, f"{label} has no bound")
    low = None if range_.low is None else fit(member.type, range_.low)
    high = None if range_.high is None else fit(member.type, range_.high)
    for end, bound in (("low", low), ("high", high)):
        if isinstance(bound, Misfit):
            message = f"{label} does not fit: {bound.reason}"
            yield Finding(SchemaCode.RANGE_BOUNDS, (*at, end), message, bound.hint)
    if _exceeds(low, high):
        message = f"{label} is empty: {low} exceeds {high}"
        yield Finding(SchemaCode.RANGE_BOUNDS, (*at, "low"), message, "swap the bounds")


def _check_findings(
    at: Path, owner: Declaration, check: Check, columns: Columns
) -> Iterator[Finding]:
    member = columns.get(check.property)
    if member is None:
        yield _unknown_property((*at, "property"), owner, "@check", check.property, columns)
    elif member.type is not Scalar.STRING:
        message = f"{owner.name}: the check of {check.property} needs a String, not {member.type}"
        yield Finding(SchemaCode.CHECK_MEMBER, (*at, "property"), message)
    if fault := pattern_fault(check.pattern):
        message = f"{owner.name}: the pattern of {check.property} is refused: {fault}"
        hint = "write what Python, RE2 and Java all read alike"
        yield Finding(SchemaCode.CHECK_PATTERN, (*at, "pattern"), message, hint)


def _length_findings(
    at: Path, owner: Declaration, length: Length, columns: Columns
) -> Iterator[Finding]:
    member = columns.get(length.property)
    label = f"{owner.name}: the length of {length.property}"
    if member is None:
        yield _unknown_property((*at, "property"), owner, "@length", length.property, columns)
    elif member.type is not Scalar.STRING and not isinstance(member.type, ListType):
        message = f"{label} needs a String or a list, not {member.type}"
        hint = "a Vector has its dimension, an enum its values, a number its @range"
        yield Finding(SchemaCode.LENGTH_MEMBER, (*at, "property"), message, hint)
    low, high = length.low, length.high
    if low is None and high is None:
        yield Finding(SchemaCode.LENGTH_BOUNDS, at, f"{label} has no bound")
    for end, bound in (("low", low), ("high", high)):
        if bound is not None and not 0 <= bound <= LENGTH_MAX:
            message = f"{label} cannot be {bound}"
            hint = f"between 0 and {LENGTH_MAX}"
            yield Finding(SchemaCode.LENGTH_BOUNDS, (*at, end), message, hint)
    if low is not None and high is not None and low > high:
        message = f"{label} is empty: {low} exceeds {high}"
        yield Finding(SchemaCode.LENGTH_BOUNDS, (*at, "low"), message, "swap the bounds")


def _repeated_member_findings(
    at: Path, owner: Declaration, annotation: str, members: tuple[str, ...]
) -> Iterator[Finding]:
    for position in repeated_positions(members):
        message = f"{owner.name}: {annotation} names {members[position]} twice"
        yield Finding(SchemaCode.DUPLICATE_CONSTRAINT, (*at, position), message)


def _repetition_findings(
    at: Path, owner: Declaration, annotation: str, constraints: Iterable[Hashable]
) -> Iterator[Finding]:
    for position in repeated_positions(constraints):
        message = f"{owner.name}: {annotation} is stated twice for the same properties"
        yield Finding(SchemaCode.DUPLICATE_CONSTRAINT, (*at, position), message)


def _unknown_property(
    at: Path, owner: Declaration, annotation: str, name: str, columns: Columns
) -> Finding:
    message = f"{owner.name}: {annotation} names {name[:100]}, which is not one of its properties"
    return Finding(SchemaCode.UNKNOWN_PROPERTY, at, message, did_you_mean(name, columns))


def _is_opaque(type_: PropertyType) -> bool:
    return isinstance(type_, ListType | VectorType | BlobType)


def _exceeds(low: Value | Misfit | None, high: Value | Misfit | None) -> bool:
    if isinstance(low, Misfit | None) or isinstance(high, Misfit | None):
        return False
    # Both were fitted to one ordered type, which mypy cannot know.
    return low > high  # type: ignore[operator]
