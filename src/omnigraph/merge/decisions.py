"""Three-way decisions: for every value that both sides changed, which side's value to keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from itertools import repeat
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from omnigraph.changes.digests import slim
from omnigraph.changes.records import TableChanges, exclude_ids, ids_of, select_ids
from omnigraph.changes.wide import WideValues, given_value, is_reference
from omnigraph.embedding.notes import STALE
from omnigraph.engine.protocol import Data, Engine
from omnigraph.limits import COMPILED_QUERIES_MAX
from omnigraph.merge.conflicts import Conflict, ConflictKind
from omnigraph.merge.resolutions import Choice, Given, Resolutions
from omnigraph.model.counts import Counts
from omnigraph.model.types import Scalar
from omnigraph.relational.plans import GivenRows, OutputColumn, Plan
from omnigraph.relational.trees import column, table
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.embeds import EmbeddedVector, embedded_vectors

_Image: TypeAlias = "dict[str, Any] | None"


class _Side(IntEnum):
    """Which side's value is kept: that of the side that changed it, unless both are equal."""

    OURS = 0
    THEIRS = 1
    NEITHER = 2
    BOTH = 3


@dataclass(frozen=True, slots=True)
class Survivors:
    """The ids of rows that one side deleted and the other changed, and that the merge keeps.

    Attributes:
        restored: Ours deleted them, and they were decided for theirs.
        retained: Theirs deleted them, and they were decided for ours or not decided yet.
    """

    restored: pa.Array = field(default_factory=lambda: pa.array([], pa.utf8()))
    retained: pa.Array = field(default_factory=lambda: pa.array([], pa.utf8()))

    def __add__(self, other: Survivors) -> Survivors:
        return Survivors(
            pa.concat_arrays([self.restored, other.restored]),
            pa.concat_arrays([self.retained, other.retained]),
        )


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge does to one table.

    Attributes:
        added: Inserted rows, whose ids the target does not have.
        replaced: Updated rows, whole, which replace those of the target.
        deleted: The ids of deleted rows.
        conflicts: The conflicts without a decision.
        survivors: The rows that it keeps although one side deleted them.
        wide: Finds the vectors and blobs of rows that only refer to them: all do, or none.
    """

    type: SchemaType
    added: pa.Table
    replaced: pa.Table
    deleted: pa.Array
    conflicts: tuple[Conflict, ...] = ()
    survivors: Survivors = field(default_factory=Survivors)
    wide: WideValues = field(default_factory=WideValues, compare=False)

    @classmethod
    def nothing(cls, type_: SchemaType) -> Self:
        """A merge that leaves the table unchanged."""
        empty = table_schema(type_).empty_table()
        return cls(type_, empty, empty, pa.array([], pa.utf8()))

    @property
    def counts(self) -> Counts:
        """How many rows are inserted, updated and deleted."""
        return Counts(self.added.num_rows, self.replaced.num_rows, len(self.deleted))

    @property
    def is_referring(self) -> bool:
        """Whether its rows only refer to their vectors and blobs."""
        return any(is_reference(each.type) for each in self.added.schema)

    def leaving_out(self, ids: pa.Array) -> Merged:
        """The merge without its changes to these rows."""
        return replace(
            self,
            added=exclude_ids(self.added, ids),
            replaced=exclude_ids(self.replaced, ids),
            deleted=self.deleted.filter(pc.invert(pc.is_in(self.deleted, value_set=ids))),
        )

    def deleting(self, ids: pa.Array) -> Merged:
        """The merge that deletes these rows, too."""
        rest = self.leaving_out(ids)
        return replace(rest, deleted=pa.concat_arrays([rest.deleted, ids]))


@dataclass(frozen=True, slots=True)
class Unsettled:
    """What is unknown about a virtual base's rows, since the commits it was folded from disagree.

    Attributes:
        contested: The ids of rows whose existence in the base is unknown.
        unknown: By column, the ids of rows whose value there is unknown.
    """

    contested: pa.Array = field(default_factory=lambda: pa.array([], pa.utf8()))
    unknown: Mapping[str, pa.Array] = field(default_factory=dict)

    def rows(self) -> pa.Array:
        """The ids of rows with an unknown value."""
        found = [each for each in self.unknown.values() if len(each)]
        return pc.unique(pa.concat_arrays(found)) if found else pa.array([], pa.utf8())

    def joined(self, other: Unsettled) -> Unsettled:
        """What is unknown in either."""
        contested = pc.unique(pa.concat_arrays([self.contested, other.contested]))
        parts: dict[str, list[pa.Array]] = {}
        for each in (self, other):
            for name, ids in each.unknown.items():
                parts.setdefault(name, []).append(ids)
        unknown = {name: pc.unique(pa.concat_arrays(some)) for name, some in parts.items()}
        return Unsettled(contested, unknown)

    def blanked(self, rows: pa.Table) -> pa.Table:
        """The rows with null for every unknown value."""
        here = pa.array(np.arange(rows.num_rows))
        for name, ids in self.unknown.items():
            at = rows.schema.get_field_index(name)
            is_unknown = pc.is_in(ids_of(rows), value_set=ids)
            # Values of any type are taken by position, and a null position gives a null.
            places = pc.if_else(is_unknown, pa.scalar(None, pa.int64()), here)
            rows = rows.set_column(at, rows.schema.field(at), rows[name].take(places))
        return rows


def adopt(theirs: TableChanges) -> Merged:
    """The changes of the source, for a table that the target did not change."""
    deleted = ids_of(theirs.deleted)
    return Merged(theirs.type, theirs.inserted, theirs.after, deleted, wide=theirs.wide)


@dataclass(frozen=True, slots=True)
class ThreeWay:
    """Merges the changes of both sides to one table since their base.

    Attributes:
        strict_rows: Whether changes of different properties of one row conflict, too.
    """

    engine: Engine
    data: Data
    resolutions: Resolutions
    strict_rows: bool = False

    def merge(
        self, ours: TableChanges, theirs: TableChanges, unsettled: Unsettled | None = None
    ) -> Merged:
        """Decide rows that both sides changed value by value; take the other changes of theirs.

        Args:
            unsettled: What is unknown about the base, if it is a virtual one: sides that differ
                there are in conflict.
        """
        unsettled = unsettled or Unsettled()
        ours_ids, theirs_ids = ours.ids(), theirs.ids()
        both = theirs_ids.filter(pc.is_in(theirs_ids, value_set=ours_ids))
        alone = adopt(theirs.without(pa.concat_arrays([both, unsettled.contested])))
        parts = [
            alone,
            self._inserts(ours, theirs, both),
            self._updates(ours, theirs, both, unsettled),
            self._deletions(ours, theirs, both),
            self._contested(ours, theirs, unsettled),
        ]
        return Merged(
            theirs.type,
            pa.concat_tables([part.added for part in parts]),
            pa.concat_tables([part.replaced for part in parts]),
            pa.concat_arrays([part.deleted for part in parts]),
            tuple(each for part in parts for each in part.conflicts),
            sum((part.survivors for part in parts), Survivors()),
            theirs.wide,
        )

    def _inserts(self, ours: TableChanges, theirs: TableChanges, both: pa.Array) -> Merged:
        ids = _common(both, ours.inserted, theirs.inserted)
        mine, other = select_ids(ours.inserted, ids), select_ids(theirs.inserted, ids)
        rows = _Rows(theirs.type, theirs.wide, None, mine, other)
        return self._decided(ConflictKind.DIVERGENT_INSERT, rows, mine, other)

    def _updates(
        self, ours: TableChanges, theirs: TableChanges, both: pa.Array, unsettled: Unsettled
    ) -> Merged:
        ids = _common(both, ours.after, theirs.after)
        base = select_ids(ours.before, ids)
        mine, other = select_ids(ours.after, ids), select_ids(theirs.after, ids)
        rows = _Rows(theirs.type, theirs.wide, base, mine, other)
        return self._decided(ConflictKind.DIVERGENT_UPDATE, rows, mine, other, unsettled)

    def _deletions(self, ours: TableChanges, theirs: TableChanges, both: pa.Array) -> Merged:
        """Rows that one side deleted and the other updated; rows that both deleted need nothing."""
        gone = _common(both, ours.deleted, theirs.after)
        going = _common(both, ours.after, theirs.deleted)
        type_, wide = theirs.type, theirs.wide
        come = _Rows(
            type_, wide, select_ids(theirs.before, gone), None, select_ids(theirs.after, gone)
        )
        stay = _Rows(
            type_, wide, select_ids(ours.before, going), select_ids(ours.after, going), None
        )
        return self._one_sided(come, stay)

    def _contested(self, ours: TableChanges, theirs: TableChanges, unsettled: Unsettled) -> Merged:
        """Rows that only one side has, where it is unknown whether the base had them."""
        contested = unsettled.contested
        gone = _common(contested, theirs.inserted, exclude_ids(theirs.inserted, ours.ids()))
        going = _common(contested, ours.inserted, exclude_ids(ours.inserted, theirs.ids()))
        type_, wide = theirs.type, theirs.wide
        come = _Rows(type_, wide, None, None, select_ids(theirs.inserted, gone))
        stay = _Rows(type_, wide, None, select_ids(ours.inserted, going), None)
        return self._one_sided(come, stay)

    def _one_sided(self, come: _Rows, stay: _Rows) -> Merged:
        """Rows that only theirs has, and rows that only ours has: each conflicts as a whole."""
        assert come.theirs is not None, "theirs has the rows that may come"
        assert stay.ours is not None, "ours has the rows that may go"
        added, undecided = self._whole_rows(come, ids_of(come.theirs))
        deleted, more = self._whole_rows(stay, ids_of(stay.ours))
        back = select_ids(come.theirs, added)
        survivors = Survivors(added, ids_of(exclude_ids(stay.ours, deleted)))
        return Merged(come.type, back, back.slice(0, 0), deleted, (*undecided, *more), survivors)

    def _whole_rows(self, rows: _Rows, ids: pa.Array) -> tuple[pa.Array, list[Conflict]]:
        """The ids of rows that were decided for theirs, and the conflicts without a decision."""
        taken, left = [], []
        for place, id_ in enumerate(ids.to_pylist()):
            match self.resolutions.decide_place(rows.type.name, id_, ()):
                case Choice.THEIRS:
                    taken.append(id_)
                case Choice.OURS:
                    pass
                case _:
                    left.append(place)
        conflicts = [
            Conflict(
                ConflictKind.DELETE_VS_UPDATE,
                rows.type.name,
                ids[place].as_py(),
                base=before,
                ours=own,
                theirs=other,
            )
            for place, (before, own, other) in zip(left, rows.images(left), strict=True)
        ]
        return pa.array(taken, pa.utf8()), conflicts

    def _decided(
        self,
        kind: ConflictKind,
        rows: _Rows,
        ours: pa.Table,
        theirs: pa.Table,
        unsettled: Unsettled | None = None,
    ) -> Merged:
        """Merge rows with the same ids on both sides, in the same order, value by value."""
        nothing = pa.array([], pa.utf8())
        if not ours.num_rows:
            return Merged(rows.type, ours, ours, nothing)
        names = [name for name in ours.column_names if name != "id"]
        sides = self._sides(tuple(names), rows.base, ours, theirs)
        if unsettled is not None:
            _unsettle(sides, ours, unsettled)
        if self.strict_rows:
            _widen(sides)
        conflicts: list[Conflict] = []
        vectors = embedded_vectors(rows.type)
        derived = {name for vector in vectors for name in (vector.name, vector.companion)}
        given = np.zeros(ours.num_rows, np.bool_)
        for name, side in sides.items():
            left: list[int] = []
            if name in derived:
                continue
            for place in np.flatnonzero(side == _Side.NEITHER).tolist():
                id_ = ours["id"][place].as_py()
                match self.resolutions.decide_place(rows.type.name, id_, (name,)):
                    case Choice.OURS:
                        side[place] = _Side.OURS
                    case Choice.THEIRS:
                        side[place] = _Side.THEIRS
                    case Given() as decided:
                        theirs = with_value(rows.type, theirs, name, place, decided)
                        side[place] = _Side.THEIRS
                        given[place] = True
                    case _:
                        left.append(place)
            conflicts += rows.conflicts(kind, name, left)
        stale = {vector: _follow_texts(vector, sides, given) for vector in vectors}
        merged = _taken(ours, theirs, sides)
        changed = np.any([sides[name] == _Side.THEIRS for name in names], axis=0)
        for vector, is_stale in stale.items():
            merged = _mark_stale(merged, vector, is_stale)
            changed |= is_stale
        return Merged(
            rows.type, ours.slice(0, 0), merged.filter(pa.array(changed)), nothing, tuple(conflicts)
        )

    def _sides(
        self, names: tuple[str, ...], base: pa.Table | None, ours: pa.Table, theirs: pa.Table
    ) -> dict[str, np.ndarray]:
        given = {"ours": slim(ours), "theirs": slim(theirs)}
        if base is not None:
            given["base"] = slim(base)
        question = _whose(names, has_base=base is not None)
        answer = self.engine.run(question, Data(self.data.table, given=given))
        # The engine may return rows in any order.
        places = pc.index_in(ids_of(ours), value_set=answer["id"].combine_chunks())
        return {
            name: answer[f"c{place}"].take(places).to_numpy().copy()
            for place, name in enumerate(names)
        }


def _common(both: pa.Array, ours: pa.Table, theirs: pa.Table) -> pa.Array:
    """The ids that are in both parts, in order."""
    in_ours = both.filter(pc.is_in(both, value_set=ids_of(ours)))
    found = in_ours.filter(pc.is_in(in_ours, value_set=ids_of(theirs)))
    return found.take(pc.sort_indices(found))


def _unsettle(sides: dict[str, np.ndarray], rows: pa.Table, unsettled: Unsettled) -> None:
    """Mark values that differ as conflicts where the base's value is unknown."""
    for name, ids in unsettled.unknown.items():
        is_unknown = pc.is_in(rows["id"], value_set=ids).to_numpy()
        sides[name][is_unknown & (sides[name] != _Side.BOTH)] = _Side.NEITHER


def _widen(sides: dict[str, np.ndarray]) -> None:
    """Mark every value that differs as a conflict, in rows that both sides changed."""
    for each in sides.values():
        each[each != _Side.BOTH] = _Side.NEITHER


def _follow_texts(
    vector: EmbeddedVector, sides: dict[str, np.ndarray], given: np.ndarray
) -> np.ndarray:
    """Take a vector and its note from the side that the texts are of; where they are of neither.

    Such a vector is stale (docs/decisions/0020).

    Args:
        given: Where a resolution gave some value of a row.
    """
    texts = [sides[name] for name in vector.sources]
    is_ours = np.any([side == _Side.OURS for side in texts], axis=0)
    is_theirs = np.any([side == _Side.THEIRS for side in texts], axis=0)
    pair = [sides[vector.name], sides[vector.companion]]
    their_pair = np.any([side == _Side.THEIRS for side in pair], axis=0) & np.all(
        [(side == _Side.THEIRS) | (side == _Side.BOTH) for side in pair], axis=0
    )
    from_theirs = np.where(is_ours | is_theirs, is_theirs & ~is_ours, their_pair)
    is_mixed = (is_ours & is_theirs) | (given & (is_ours | is_theirs))
    taken = np.where(from_theirs & ~is_mixed, _Side.THEIRS, _Side.OURS)
    for name in (vector.name, vector.companion):
        sides[name] = np.where(sides[name] == _Side.BOTH, _Side.BOTH, taken)
    return np.asarray(is_mixed)


def _mark_stale(rows: pa.Table, vector: EmbeddedVector, is_stale: np.ndarray) -> pa.Table:
    if not is_stale.any():
        return rows
    at = rows.schema.get_field_index(vector.companion)
    notes = pc.if_else(pa.array(is_stale), STALE, rows[vector.companion])
    return rows.set_column(at, rows.schema.field(at), notes)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows with the same ids in the base and on either side, in the same order.

    Attributes:
        base: None if the base does not have the rows; `ours` and `theirs` likewise.
    """

    type: SchemaType
    wide: WideValues
    base: pa.Table | None
    ours: pa.Table | None
    theirs: pa.Table | None

    def conflicts(self, kind: ConflictKind, name: str, places: list[int]) -> Iterator[Conflict]:
        """The conflicts in one property, at these positions. Only these values are read."""
        at = pa.array(places, pa.int64())
        ids = repeat(None) if self.ours is None else self.ours["id"].take(at).to_pylist()
        schema = table_schema(self.type)
        values = (
            repeat(None) if rows is None else self.wide.values(schema, rows.take(at), name)
            for rows in (self.base, self.ours, self.theirs)
        )
        for id_, before, own, other in zip(ids, *values, strict=False):
            yield Conflict(kind, self.type.name, id_, name, base=before, ours=own, theirs=other)

    def images(self, places: list[int]) -> Iterator[tuple[_Image, _Image, _Image]]:
        """Rows of the base and of either side, as Python values."""
        at = pa.array(places, pa.int64())
        schema = table_schema(self.type)
        sides = (
            repeat(None)
            if rows is None
            else self.wide.complete(schema, rows.take(at)).read_all().to_pylist()
            for rows in (self.base, self.ours, self.theirs)
        )
        return zip(*sides, strict=False)


def _taken(ours: pa.Table, theirs: pa.Table, sides: dict[str, np.ndarray]) -> pa.Table:
    count = ours.num_rows
    here = np.arange(count)
    columns = []
    for name in ours.column_names:
        if name == "id":
            columns.append(ours[name])
            continue
        if not np.any(sides[name] == _Side.THEIRS):
            columns.append(ours[name])
            continue
        if np.all(sides[name] == _Side.THEIRS):
            columns.append(theirs[name])
            continue
        # Values of any type are taken by position, so lists and vectors need no special case.
        place = np.where(sides[name] == _Side.THEIRS, here + count, here)
        joined = pa.chunked_array([*ours[name].chunks, *theirs[name].chunks], ours[name].type)
        columns.append(joined.take(pa.array(place)))
    return pa.Table.from_arrays(columns, schema=ours.schema)


def with_value(type_: SchemaType, rows: pa.Table, name: str, place: int, given: Given) -> pa.Table:
    """The rows with a value of neither side at one position."""
    at = rows.schema.get_field_index(name)
    field = rows.schema.field(at)
    value = _held(type_, name, field.type, given.fitting(type_, name))
    column = rows[name]
    parts = [*column.slice(0, place).chunks, value, *column.slice(place + 1).chunks]
    return rows.set_column(at, field, pa.chunked_array(parts, field.type))


def _held(type_: SchemaType, name: str, kind: pa.DataType, value: object) -> pa.Array:
    if is_reference(kind):
        return given_value(table_schema(type_).field(name).type, value)
    return pa.array([value], kind)


@lru_cache(maxsize=COMPILED_QUERIES_MAX)
def _whose(names: tuple[str, ...], *, has_base: bool) -> Plan:
    """A plan that returns the `_Side` of every value, by id and column."""

    def same(name: str, left: str, right: str) -> exp.Expr:
        return exp.NullSafeEQ(this=column(name, left), expression=column(name, right))

    def side(name: str) -> exp.Expr:
        case = exp.Case().when(same(name, "o", "t"), _number(_Side.BOTH))
        if has_base:
            case = case.when(same(name, "t", "b"), _number(_Side.OURS))
            case = case.when(same(name, "o", "b"), _number(_Side.THEIRS))
        return case.else_(_number(_Side.NEITHER))

    on = exp.EQ(this=column("id", "o"), expression=column("id", "t"))
    query = exp.select(column("id", "o"), *(side(name) for name in names))
    query = query.from_(table("ours", "o")).join(table("theirs", "t"), on=on)
    relations = {"ours": GivenRows(), "theirs": GivenRows()}
    if has_base:
        on_base = exp.EQ(this=column("id", "o"), expression=column("id", "b"))
        query = query.join(table("base", "b"), on=on_base)
        relations["base"] = GivenRows()
    outputs = (
        OutputColumn("id", Scalar.STRING, nullable=False),
        *(OutputColumn(f"c{place}", Scalar.I32, nullable=False) for place in range(len(names))),
    )
    return Plan(query, relations, outputs)


def _number(side: _Side) -> exp.Expr:
    return exp.Literal.number(int(side))
