"""Views: a branch as it is now, or was, with what a plan needs to read it."""

from __future__ import annotations

from functools import cache

from omnigraph.engine.protocol import Data
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.names import BranchName
from omnigraph.model.tables import TableKey
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from omnigraph.transaction.work import View


def view_of(manifest: Manifest, catalogs: Catalogs, branch: BranchName) -> View:
    """The branch as it is now.

    Raises:
        BranchNotFoundError: the graph has no such branch.
    """
    return view_at(manifest.store, catalogs, manifest.current(branch))


def view_at(store: Store, catalogs: Catalogs, snapshot: Snapshot) -> View:
    """The graph at a snapshot, with the catalog that its rows follow."""
    return View(snapshot, catalogs.of(snapshot.schema_digest), data_at(store, snapshot))


def data_at(store: Store, snapshot: Snapshot) -> Data:
    """The rows of one commit."""

    @cache
    def table(key: TableKey) -> Table:
        pin = snapshot.pin(key)
        return store.tables.open(pin.location, ref=pin.ref, version=pin.version)

    return Data(table)
