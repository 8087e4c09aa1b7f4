"""Snapshots: the value of a graph at one commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from omnigraph.choices import TableKind
from omnigraph.errors import TypeNotFoundError
from omnigraph.manifest.branches import Branch
from omnigraph.model.commits import Commit
from omnigraph.model.names import BranchName
from omnigraph.model.tables import TableKey, TablePin, Tombstone


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The graph at one commit: which version of each table, under which schema.

    Attributes:
        branch: The branch it was read from; the head commit may have been made on another.
        manifest_version: The version of that branch's manifest.
        head: The commit it shows.
        ref: The ref of the manifest that carries the branch; no other branch of its name has it.
        is_legacy: Whether the manifest has an older format, which kept its history elsewhere.
    """

    branch: BranchName
    manifest_version: int
    head: Commit
    pins: Mapping[TableKey, TablePin]
    tombstones: tuple[Tombstone, ...] = ()
    ref: str | None = None
    is_legacy: bool = False

    @property
    def schema_digest(self) -> str:
        """The identity of the schema at this commit."""
        return self.head.schema_digest

    def pin(self, key: TableKey) -> TablePin:
        """The pin of a type's table.

        Raises:
            TypeNotFoundError: the graph has no such type at this commit.
        """
        pin = self.pins.get(key)
        if pin is None:
            message = f"{key} is not a type of this graph at commit {self.head.commit_id}"
            have = ", ".join(map(str, sorted(self.pins)))
            raise TypeNotFoundError(message, hint=f"it has {have}")
        return pin

    def row_count(self, key: TableKey) -> int:
        """How many rows a type has.

        Raises:
            TypeNotFoundError: the graph has no such type at this commit.
        """
        return self.pin(key).row_count

    def owns(self, pin: TablePin) -> bool:
        """Whether only this branch moves the head of the pinned table."""
        if self.ref is None:
            return pin.ref is None
        return Branch(self.branch, self.ref).owns(pin.ref)


def by_key(pins: tuple[TablePin, ...]) -> Mapping[TableKey, TablePin]:
    """The pins by type: nodes before edges, each sorted by name."""
    ordered = sorted(pins, key=lambda pin: (pin.key.kind is TableKind.EDGE, pin.key.type_name))
    return MappingProxyType({pin.key: pin for pin in ordered})
