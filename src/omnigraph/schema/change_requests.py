"""Requests of a schema change: the properties to fill or convert, and whether they need it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.schema.change_codes import ChangeCode, ChangeFinding
from omnigraph.schema.matching import property_names
from omnigraph.schema.retyping import Retyping
from omnigraph.schema.type_changes import TypeChange

PropertyPath = tuple[str, str]
"""A type's name and the name of a property of it, both of the new schema."""

Changes = Mapping[TableKey, TypeChange]


def request_findings(
    new: Catalog,
    changes: Changes,
    *,
    fills: Collection[PropertyPath],
    conversions: Collection[PropertyPath],
) -> Iterator[ChangeFinding]:
    """What is wrong with the properties that a caller wants to fill or convert.

    A request that only a type without rows does not need is accepted: the same command has to work
    on a branch where the type is empty.
    """
    for path in sorted(set(fills)):
        type_ = _type_at(new, path)
        if isinstance(type_, ChangeFinding):
            yield type_
        elif reason := _useless_fill(changes.get(type_.table_key), path[1]):
            yield _finding(ChangeCode.FILL_WITHOUT_USE, path, "fill", reason)
    for path in sorted(set(conversions)):
        type_ = _type_at(new, path)
        if isinstance(type_, ChangeFinding):
            yield type_
        elif reason := _useless_conversion(changes.get(type_.table_key), path[1]):
            yield _finding(ChangeCode.CONVERSION_WITHOUT_USE, path, "convert", reason)


def _type_at(new: Catalog, path: PropertyPath) -> SchemaType | ChangeFinding:
    type_name, name = path
    types = {type_.name: type_ for type_ in new.types}
    if type_name not in types:
        message = f"the new schema has no type {type_name[:200]}"
        hint = did_you_mean(type_name, types)
    elif name not in property_names(types[type_name]):
        message = f"{type_name} has no property {name[:200]} in the new schema"
        hint = did_you_mean(name, property_names(types[type_name]))
    else:
        return types[type_name]
    code = ChangeCode.UNKNOWN_PROPERTY_REQUESTED
    return ChangeFinding(code, type_name, name, message, hint)


def _useless_fill(change: TypeChange | None, name: str) -> str:
    if change is None:
        return "its type is new and has no rows"
    if change.old_property(name) is not None:
        return "it exists already and has values"
    return ""


def _useless_conversion(change: TypeChange | None, name: str) -> str:
    if change is None:
        return "its type is new and has no rows"
    if change.old_property(name) is None:
        return "it is new and has no values"
    match change.retyping(name):
        case Retyping.WIDEN | Retyping.CONVERT | Retyping.IMPOSSIBLE:
            return ""
        case Retyping.NONE:
            return "its type does not change"
        case Retyping.RELABEL | Retyping.RESTRICT:
            return "its stored values stay as they are"


def _finding(code: ChangeCode, path: PropertyPath, option: str, reason: str) -> ChangeFinding:
    type_name, name = path
    message = f"--{option} names {type_name}.{name}, but {reason}"
    return ChangeFinding(code, type_name, name, message, f"leave out --{option}")
