"""Views: a branch as it is now, or was, with what a plan needs to read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

from omnigraph.engine.protocol import Data
from omnigraph.errors import BranchNotFoundError, ConflictError, OmnigraphError, StorageError
from omnigraph.manifest.branches import Branches
from omnigraph.manifest.layout import MANIFEST
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


@contextmanager
def reading(store: Store, *snapshots: Snapshot) -> Iterator[None]:
    """Distinguish a storage failure from a branch that was deleted while it was read.

    For readers: a writer, whose work is lost with its branch, is told so by the transaction.

    Raises:
        BranchNotFoundError: the branch of a snapshot was deleted.
        ConflictError: it was deleted, and there is another branch of its name.
    """
    try:
        yield
    except StorageError as failure:
        for each in snapshots:
            if _is_gone(store, each):
                raise _deleted(store, each) from failure
        raise


def _is_gone(store: Store, snapshot: Snapshot) -> bool:
    if snapshot.ref is None:
        return False
    with suppress(StorageError):
        return not store.refs.exists(MANIFEST, snapshot.ref)
    return False


def _deleted(store: Store, snapshot: Snapshot) -> OmnigraphError:
    try:
        Branches(store).find(snapshot.branch)
    except BranchNotFoundError as missing:
        return missing
    message = f"branch {snapshot.branch} was deleted and made again while it was read"
    return ConflictError(message, hint="read it again", branch=snapshot.branch)
