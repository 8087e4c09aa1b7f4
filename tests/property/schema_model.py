"""Graphs as dictionaries whose schema changes: what the user means, without any of our plans.

Types and properties have numbers for life, which rows are kept by, so a rename moves nothing.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st

Row: TypeAlias = "Mapping[int, Any]"
"""The values of a row, by the number of the property; an edge has its ends by `SRC` and `DST`."""

SRC, DST, KEY = -2, -1, 0

ARROW: Final = {
    "String": pa.string(),
    "Bool": pa.bool_(),
    "I32": pa.int32(),
    "I64": pa.int64(),
    "U32": pa.uint32(),
    "U64": pa.uint64(),
    "F32": pa.float32(),
    "F64": pa.float64(),
    "Date": pa.date32(),
    "enum(a, b)": pa.string(),
    "enum(c, b, a)": pa.string(),
    "[String]": pa.list_(pa.string()),
    "Vector(2)": pa.list_(pa.float32(), 2),
    "Blob": pa.binary(),
}
WIDER: Final = {
    "Bool": ("String",),
    "I32": ("I64", "String"),
    "I64": ("String",),
    "U32": ("U64", "I64", "String"),
    "U64": ("String",),
    "F32": ("F64", "String"),
    "F64": ("String",),
    "enum(a, b)": ("enum(c, b, a)", "String"),
    "enum(c, b, a)": ("String",),
}
"""The types that every value of a type has a counterpart in."""

WITHOUT_DEFAULT: Final = ("[String]", "Vector(2)", "Blob")

_quarters = st.integers(-9, 9).map(lambda number: number / 4)
VALUES: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    "String": st.text("aé\n'\"", max_size=3),
    "Bool": st.booleans(),
    "I32": st.sampled_from([0, -1, 7, -(2**31), 2**31 - 1]),
    "I64": st.sampled_from([0, -1, 2**40, -(2**63), 2**63 - 1]),
    "U32": st.sampled_from([0, 7, 2**32 - 1]),
    "U64": st.sampled_from([0, 7, 2**64 - 1]),
    "F32": _quarters,
    "F64": _quarters,
    "Date": st.sampled_from([date(1969, 12, 31), date(2024, 2, 29)]),
    "enum(a, b)": st.sampled_from(["a", "b"]),
    "enum(c, b, a)": st.sampled_from(["a", "b", "c"]),
    "[String]": st.lists(st.sampled_from(["", "x", "é"]), max_size=2),
    "Vector(2)": st.tuples(_quarters, _quarters).map(list),
    "Blob": st.binary(max_size=3),
}


@dataclass(frozen=True)
class ModelProperty:
    """A property by its number; `key` is the one that the ids are made of."""

    number: int
    name: str
    type: str
    nullable: bool = False
    default: Any = None

    @property
    def is_key(self) -> bool:
        return self.number == KEY

    def declare(self, former: str | None) -> str:
        text = f"{self.name}: {self.type}{'?' * self.nullable}{' @key' * self.is_key}"
        if self.default is not None:
            text += f" @default({literal(self.type, self.default)})"
        return text + hint(former, self.name)


@dataclass(frozen=True)
class ModelType:
    """A type by its number; an edge type has the numbers of its ends."""

    number: int
    name: str
    properties: tuple[ModelProperty, ...]
    ends: tuple[int, int] | None = None

    @property
    def shape(self) -> tuple[Any, ...]:
        """What the columns of its table depend on."""
        return tuple((one.number, one.name, one.type, one.nullable) for one in self.properties)


@dataclass(frozen=True)
class GraphModel:
    """A schema and its rows: by the number of a type, then by id."""

    types: tuple[ModelType, ...]
    rows: Mapping[int, Mapping[str, Row]]

    def type_numbered(self, number: int) -> ModelType:
        [type_] = [one for one in self.types if one.number == number]
        return type_

    def named_rows(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The rows as a query returns them."""
        return {
            type_.name: {
                id_: {name: row[number] for name, number in _columns(type_)}
                for id_, row in self.rows[type_.number].items()
            }
            for type_ in self.types
        }

    def declare(self, before: "GraphModel | None" = None) -> str:
        """The text of the schema, with hints for what had another name before."""
        old_types = {one.number: one for one in before.types} if before else {}
        return "\n".join(
            self._declare_type(type_, old_types.get(type_.number)) for type_ in self.types
        )

    def _declare_type(self, type_: ModelType, old: ModelType | None) -> str:
        names = {one.number: one.name for one in old.properties} if old else {}
        members = [one.declare(names.get(one.number)) for one in type_.properties]
        header = f"node {type_.name}"
        if type_.ends:
            source, target = (self.type_numbered(number).name for number in type_.ends)
            header = f"edge {type_.name}: {source} -> {target}"
            members.append("@key(src, dst)")
        header += hint(old.name if old else None, type_.name)
        return f"{header} {{ {'  '.join(members)} }}"

    def nulls_in_required(self) -> set[tuple[str, str, str]]:
        """The type, the property and the id of each null that is not allowed."""
        return {
            (type_.name, one.name, id_)
            for type_ in self.types
            for one in type_.properties
            for id_, row in self.rows[type_.number].items()
            if not one.nullable and row[one.number] is None
        }


def _columns(type_: ModelType) -> Iterator[tuple[str, int]]:
    if type_.ends:
        yield from (("src", SRC), ("dst", DST))
    yield from ((one.name, one.number) for one in type_.properties)


def hint(former: str | None, name: str) -> str:
    return f' @rename_from("{former}")' if former not in (None, name) else ""


def literal(type_: str, value: Any) -> str:
    if type_.startswith("enum"):
        return str(value)
    if isinstance(value, date):
        return f'"{value}"'
    return json.dumps(value, ensure_ascii=False)


def convert(before: str, after: str, value: Any) -> Any:
    """The value that a type has in the place of another type's."""
    if value is None or after == before or after != "String" or before.startswith("enum"):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def lift(row: Row, before: ModelType, after: ModelType) -> Row:
    """A row of an earlier declaration of a type as one of a later: converted, and with defaults."""
    types = {one.number: one.type for one in before.properties}
    lifted = {number: value for number, value in row.items() if number in (SRC, DST)}
    for one in after.properties:
        if one.number in types:
            lifted[one.number] = convert(types[one.number], one.type, row[one.number])
        else:
            lifted[one.number] = one.default
    return lifted


def differences(before: GraphModel, after: GraphModel) -> set[tuple[str, str, str]]:
    """What happened to which rows: the operation, the name of the type, and the id."""
    found = set()
    old_types = {one.number: one for one in before.types}
    for type_ in after.types:
        rows, old = after.rows[type_.number], old_types.pop(type_.number, None)
        old_rows = before.rows[type_.number] if old else {}
        found |= {("insert", type_.name, id_) for id_ in rows.keys() - old_rows.keys()}
        found |= {("delete", type_.name, id_) for id_ in old_rows.keys() - rows.keys()}
        for id_ in rows.keys() & old_rows.keys():
            assert old is not None
            if lift(old_rows[id_], old, type_) != rows[id_]:
                found.add(("update", type_.name, id_))
    for old in old_types.values():
        found |= {("delete", old.name, id_) for id_ in before.rows[old.number]}
    return found


def change(before: GraphModel, types: tuple[ModelType, ...]) -> GraphModel:
    """The graph with other declarations."""
    old_types = {one.number: one for one in before.types}
    rows = {
        type_.number: {
            id_: lift(row, old_types[type_.number], type_)
            for id_, row in before.rows[type_.number].items()
        }
        if type_.number in old_types
        else {}
        for type_ in types
    }
    return GraphModel(types, rows)


def write(model: GraphModel, number: int, id_: str, row: Row) -> GraphModel:
    """The graph with a row in the place of the one with its id, if there is one."""
    rows = {**model.rows[number], id_: row}
    return replace(model, rows={**model.rows, number: rows})


def delete(model: GraphModel, number: int, id_: str) -> GraphModel:
    """The graph without a node and the edges at it."""
    rows = {key: dict(values) for key, values in model.rows.items()}
    del rows[number][id_]
    for type_ in model.types:
        if type_.ends:
            gone = [end == number for end in type_.ends]
            rows[type_.number] = {
                edge_id: row
                for edge_id, row in rows[type_.number].items()
                if not (gone[0] and row[SRC] == id_) and not (gone[1] and row[DST] == id_)
            }
    return replace(model, rows=rows)
