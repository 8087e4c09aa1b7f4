"""Changed rows: what a comparison returns of one type, row by row or in chunks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Protocol

from omnigraph.choices import Op
from omnigraph.limits import ROWS_PER_BATCH_MAX
from omnigraph.model.counts import Counts
from omnigraph.schema.catalog import SchemaType

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows with the same kind of change, ordered by id.

    Attributes:
        before: The rows before the change; None if they were inserted.
        after: The rows after it, in the same order; None if they were deleted.
    """

    op: Op
    before: pa.Table | None
    after: pa.Table | None


class Changes(Protocol):
    """How one table's rows differ between two versions, in memory or on Spark."""

    @property
    def type(self) -> SchemaType:
        """The type of the table."""
        ...

    @property
    def counts(self) -> Counts:
        """How many rows were inserted, updated and deleted."""
        ...

    def chunks(self, ops: Collection[Op]) -> Iterator[Chunk]:
        """The rows with one of these kinds of change: inserted, then updated, then deleted."""
        ...


@dataclass(frozen=True, slots=True)
class _ChangeGroup:
    """Some rows with the same kind of change, as Python values, column by column."""

    type_name: str
    op: Op
    ids: list[str]
    before: Mapping[str, list[object]] | None
    after: Mapping[str, list[object]] | None


class RowChange:
    """How one row changed."""

    # For a hundred thousand rows, dictionaries and frozen fields would cost more than the diff: so
    # an object has only its position among rows of its kind, and images are built when read.
    __slots__ = ("_group", "_place")

    def __init__(self, group: _ChangeGroup, place: int) -> None:
        self._group = group
        self._place = place

    @property
    def type_name(self) -> str:
        """The type of the row."""
        return self._group.type_name

    @property
    def op(self) -> Op:
        """Whether it was inserted, updated or deleted."""
        return self._group.op

    @property
    def id(self) -> str:
        """The id of the row."""
        return self._group.ids[self._place]

    @property
    def before(self) -> Mapping[str, object] | None:
        """The row before the change, by column; None if it was inserted."""
        return _image(self._group.before, self._place)

    @property
    def after(self) -> Mapping[str, object] | None:
        """The row after the change, by column; None if it was deleted."""
        return _image(self._group.after, self._place)

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, RowChange) else NotImplemented

    # Images are dictionaries, which have no hash.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._values().items())
        return f"RowChange({values})"

    def _values(self) -> Mapping[str, object]:
        names = ("type_name", "op", "id", "before", "after")
        return {name: getattr(self, name) for name in names}


def _image(columns: Mapping[str, list[object]] | None, place: int) -> dict[str, object] | None:
    if columns is None:
        return None
    return {name: values[place] for name, values in columns.items()}


def row_changes(changes: Changes, ops: Collection[Op]) -> Iterator[RowChange]:
    """The changes of one table, row by row: inserted, then updated, then deleted."""
    name = changes.type.name
    for chunk in changes.chunks(ops):
        rows = chunk.before if chunk.after is None else chunk.after
        assert rows is not None, "a change has rows before it or after it"
        for start in range(0, rows.num_rows, ROWS_PER_BATCH_MAX):
            ids = rows["id"].slice(start, ROWS_PER_BATCH_MAX).to_pylist()
            before, after = (
                None if image is None else image.slice(start, ROWS_PER_BATCH_MAX).to_pydict()
                for image in (chunk.before, chunk.after)
            )
            group = _ChangeGroup(name, chunk.op, ids, before, after)
            yield from map(RowChange, repeat(group), range(len(ids)))
