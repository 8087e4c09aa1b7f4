"""Snapshots: the value of a graph at one commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from omnigraph.choices import TableKind
from omnigraph.errors import TypeNotFoundError
from omnigraph.model.brief import brief
from omnigraph.model.commits import Commit
from omnigraph.model.names import BranchName
from omnigraph.model.streams import StreamRecord
from omnigraph.model.tables import TableKey, TablePin, Tombstone
from omnigraph.wording import format_instant


@brief
@dataclass(frozen=True, slots=True)
class Snapshot:
    """The graph at one commit: which version of each table, under which schema.

    Attributes:
        branch: The branch it was read from; the head commit may have been made on another.
        manifest_version: The version of that branch's manifest.
        head: The commit it shows.
        ref: The ref of the manifest that carries the branch; no other branch of its name has it.
        streams: By its name, the newest batch of each stream that writes to the branch.
        hidden: The types that the actor may not read: their tables are left out.
    """

    branch: BranchName
    manifest_version: int
    head: Commit
    pins: Mapping[TableKey, TablePin]
    tombstones: tuple[Tombstone, ...] = ()
    ref: str | None = None
    streams: Mapping[str, StreamRecord] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()

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

    def to_json(self) -> dict[str, Any]:
        """The snapshot as plain values that JSON can represent."""
        head = {**asdict(self.head), "created_at": format_instant(self.head.created_at)}
        return {
            "branch": self.branch,
            "manifest_version": self.manifest_version,
            "commit": head,
            "schema_digest": self.schema_digest,
            "tables": [
                {
                    "table_key": str(key),
                    "table_id": pin.table_id,
                    "location": pin.location,
                    "version": pin.version,
                    "ref": pin.ref,
                    "row_count": pin.row_count,
                }
                for key, pin in self.pins.items()
            ],
            **({"hidden": list(self.hidden)} if self.hidden else {}),
        }

    def owns(self, pin: TablePin) -> bool:
        """Whether only this branch moves the head of the pinned table."""
        if self.ref is None:
            return pin.ref is None
        # A client over HTTP has snapshots without branches' records.
        from omnigraph.manifest.branches import Branch

        return Branch(self.branch, self.ref).owns(pin.ref)


def by_key(pins: tuple[TablePin, ...]) -> Mapping[TableKey, TablePin]:
    """The pins by type: nodes before edges, each sorted by name."""
    ordered = sorted(pins, key=lambda pin: (pin.key.kind is TableKind.EDGE, pin.key.type_name))
    return MappingProxyType({pin.key: pin for pin in ordered})
