"""Views: a branch now or at a past commit, with its catalog and open tables."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.engine.protocol import Data
from omnigraph.engine.snapshots import data_at
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
