"""Tables: the key of a type's table, and the pin that says where a snapshot reads its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from omnigraph.choices import TableKind
from omnigraph.errors import InvalidNameError
from omnigraph.model.identities import TypeIdentity
from omnigraph.model.ids import TableId
from omnigraph.model.names import TypeName


@dataclass(frozen=True, slots=True, order=True)
class TableKey:
    """The type a table holds, written `node:Person` or `edge:Knows`."""

    kind: TableKind
    type_name: TypeName

    def __str__(self) -> str:
        return f"{self.kind}:{self.type_name}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text that `str` returns.

        >>> str(TableKey.parse("node:Person"))
        'node:Person'
        """
        kind, _, name = text.partition(":")
        if kind not in set(TableKind):
            message = f"{text[:200]!r} is not a table key"
            raise InvalidNameError(message, hint="a table key is node:Type or edge:Type")
        return cls(TableKind(kind), TypeName.parse(name))


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a ref of a table started: at a version of another ref; None is the table's main."""

    source: str | None
    version: int
    ref: str


@dataclass(frozen=True, slots=True)
class TablePin:
    """The exact table version a snapshot reads for one type."""

    table_id: TableId
    key: TableKey
    location: str
    """Relative to the graph's root, so that a graph can be addressed by any of its URIs."""
    version: int
    ref: str | None
    """The Lance ref that owns the version; None is the table's main."""
    row_count: int
    identity: TypeIdentity
    """What the type and its properties are across renames."""
    forks: tuple[Fork, ...] = ()
    """The forks that lead to the ref, oldest first; earlier releases recorded none."""

    def move(self, *, version: int, ref: str | None, row_count: int) -> TablePin:
        """The pin after a write, on this ref or on one that started at this pin."""
        forks = self.forks
        if ref is not None and ref != self.ref:
            forks = (*forks, Fork(self.ref, self.version, ref))
        return replace(self, version=version, ref=ref, row_count=row_count, forks=forks)

    @property
    def place(self) -> tuple[str, str | None, int]:
        """The identity of the pinned table version."""
        return self.location, self.ref, self.version


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A dropped type's table, and its last published version.

    Attributes:
        origin: The origin of the type's identity; no later type of its kind gets it.
    """

    table_id: TableId
    key: TableKey
    location: str
    sealed_version: int
    ref: str | None
    origin: str


def table_location(kind: TableKind, table_id: TableId) -> str:
    """The location of a new table, relative to the graph's root.

    >>> table_location(TableKind.NODE, TableId("01J0"))
    'nodes/01J0'
    """
    return f"{kind.folder}/{table_id}"
