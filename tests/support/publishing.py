"""A small schema, and publishes without a writer, for manifest tests."""

from dataclasses import replace
from typing import Final

from omnigraph.clock import SystemClock
from omnigraph.manifest.drafts import AddParent, CommitDraft, PinTable
from omnigraph.manifest.publisher import publish
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.requirements import Requirement, TableAt
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.tables import TableKey, TablePin
from omnigraph.storage.store import Store

SCHEMA: Final = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Knows: Person -> Person { since: Date? }
"""
PERSON: Final = TableKey.parse("node:Person")
CITY: Final = TableKey.parse("node:City")
KNOWS: Final = TableKey.parse("edge:Knows")

_clock = SystemClock()


def manifest_at(uri: str) -> Manifest:
    """A separate reader, which shares no handle or cache with others."""
    return Manifest(Store.open(uri))


def move_pin(pin: TablePin, rows: int = 1) -> TablePin:
    """The pin after a write, which need not have happened to the table."""
    return replace(pin, version=pin.version + 1, row_count=pin.row_count + rows)


def publish_pin(
    manifest: Manifest,
    pin: TablePin,
    *,
    branch: BranchName = MAIN,
    commit_id: CommitId | None = None,
    requires: tuple[Requirement, ...] | None = None,
    actor: str | None = None,
    merged_parent: CommitId | None = None,
) -> Commit:
    """Publish the move of one table, by default requiring it at the version of `pin`."""
    if requires is None:
        requires = (TableAt(pin.key, pin.version, pin.ref),)
    merges = () if merged_parent is None else (AddParent(merged_parent),)
    draft = CommitDraft(
        branch,
        commit_id or CommitId(_clock.ulid()),
        OperationKind.LOAD,
        actor,
        changes=(PinTable(move_pin(pin)), *merges),
        requires=requires,
    )
    return publish(manifest, _clock, draft)


def advance(manifest: Manifest, key: TableKey, *, branch: BranchName = MAIN) -> Commit:
    """Read the branch and publish one move of one table."""
    return publish_pin(manifest, manifest.current(branch).pin(key), branch=branch)
