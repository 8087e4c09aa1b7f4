"""Views: a branch now or at a past commit, with its catalog and open tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from omnigraph.engine.protocol import Data
from omnigraph.engine.snapshots import data_at
from omnigraph.errors import BranchNotFoundError, ConflictError, OmnigraphError, StorageError
from omnigraph.manifest.branches import Branches
from omnigraph.manifest.layout import MANIFEST
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.names import BranchName
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.store import Store


@dataclass(frozen=True, slots=True)
class View:
    """The graph at one commit, as a writer plans on it.

    Attributes:
        data: Opens the tables at this commit.
    """

    snapshot: Snapshot
    catalog: Catalog
    data: Data


def view_of(manifest: Manifest, catalogs: Catalogs, branch: BranchName) -> View:
    """The current view of a branch.

    Raises:
        BranchNotFoundError: the graph has no such branch.
    """
    return view_at(manifest.store, catalogs, manifest.current(branch))


def view_at(store: Store, catalogs: Catalogs, snapshot: Snapshot) -> View:
    """The graph at a snapshot, with the catalog of its schema."""
    return View(snapshot, catalogs.of(snapshot.schema_digest), data_at(store, snapshot))


@contextmanager
def detect_deleted_branch(store: Store, *snapshots: Snapshot) -> Iterator[None]:
    """Distinguish a storage failure from a branch that was deleted while it was read.

    For readers. The transaction reports the same to a writer, whose work is lost with its branch.

    Raises:
        BranchNotFoundError: the branch of a snapshot was deleted.
        ConflictError: it was deleted, and there is another branch of its name.
    """
    try:
        yield
    except StorageError as failure:
        for snapshot in snapshots:
            if _is_deleted(store, snapshot):
                raise _deletion_error(store, snapshot) from failure
        raise


def _is_deleted(store: Store, snapshot: Snapshot) -> bool:
    if snapshot.ref is None:
        return False
    with suppress(StorageError):
        return not store.refs.exists(MANIFEST, snapshot.ref)
    return False


def _deletion_error(store: Store, snapshot: Snapshot) -> OmnigraphError:
    try:
        Branches(store).find(snapshot.branch)
    except BranchNotFoundError as missing:
        return missing
    message = f"branch {snapshot.branch} was deleted and made again while it was read"
    return ConflictError(message, hint="read it again", branch=snapshot.branch)
