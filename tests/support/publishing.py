"""Small graphs, and publishes to them without a writer: what manifest tests are made of."""

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
    """A reader of its own: no handle or cache is shared with another one."""
    return Manifest(Store.open(uri))


def moved(pin: TablePin, rows: int = 1) -> TablePin:
    """The pin after a write that the table itself need not have seen."""
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
    """Publish the move of one table, expecting it where `pin` was read unless told otherwise."""
    if expecting is None:
        expecting = (TableAt(pin.key, pin.version, pin.ref),)
    publication = Publication(
        branch,
        commit_id or CommitId(_clock.ulid()),
        OperationKind.LOAD,
        pins=(moved(pin),),
        expecting=expecting,
        actor=actor,
        merged_parent=merged_parent,
    )
    return publish(manifest, _clock, publication)


def advance(manifest: Manifest, key: TableKey, *, branch: BranchName = MAIN) -> Commit:
    """Read the branch and publish one move of one table."""
    return publish_pin(manifest, manifest.current(branch).pin(key), branch=branch)
