"""A small schema, and publishes without a writer, for manifest tests."""

from dataclasses import replace
from typing import Final

from omnigraph.clock import SystemClock
from omnigraph.manifest.expectations import Expectation, TableAt
from omnigraph.manifest.publisher import Publication, publish
from omnigraph.manifest.reader import Manifest
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
    expecting: tuple[Expectation, ...] | None = None,
    actor: str | None = None,
    merged_parent: CommitId | None = None,
) -> Commit:
    """Publish the move of one table, by default expecting it at the version of `pin`."""
    if expecting is None:
        expecting = (TableAt(pin.key, pin.version, pin.ref),)
    publication = Publication(
        branch,
        commit_id or CommitId(_clock.ulid()),
        OperationKind.LOAD,
        pins=(move_pin(pin),),
        expecting=expecting,
        actor=actor,
        merged_parent=merged_parent,
    )
    return publish(manifest, _clock, publication)


def advance(manifest: Manifest, key: TableKey, *, branch: BranchName = MAIN) -> Commit:
    """Read the branch and publish one move of one table."""
    return publish_pin(manifest, manifest.current(branch).pin(key), branch=branch)
