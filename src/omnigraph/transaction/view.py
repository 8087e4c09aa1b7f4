"""Views: a branch now or at a past commit, with its catalog and open tables."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from omnigraph.engine.protocol import Data
from omnigraph.engine.snapshots import data_at
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.names import BranchName
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.store import Store


class Admit(Protocol):
    """Refuses a plan by the types that it changes and reads, before it reads a row."""

    def __call__(self, *, changes: Collection[str] = (), reads: Collection[str] = ()) -> None:
        """Raise NotAllowedError if the actor may not change, or not read, one of these types."""
        ...


def _admit_all(*, changes: Collection[str] = (), reads: Collection[str] = ()) -> None:
    """Refuse nothing: nobody limits who plans on the view."""


@dataclass(frozen=True, slots=True)
class View:
    """The graph at one commit, as a writer plans on it.

    Attributes:
        data: Opens the tables at this commit.
        admit: Called by a planner with the types that it will change and read, before it reads.
    """

    snapshot: Snapshot
    catalog: Catalog
    data: Data
    admit: Admit = _admit_all

    @property
    def is_limited(self) -> bool:
        """Whether `admit` may refuse anything, so that types are worth looking up for it."""
        return self.admit is not _admit_all


def view_of(manifest: Manifest, catalogs: Catalogs, branch: BranchName) -> View:
    """The current view of a branch.

    Raises:
        BranchNotFoundError: the graph has no such branch.
    """
    return view_at(manifest.store, catalogs, manifest.current(branch))


def view_at(store: Store, catalogs: Catalogs, snapshot: Snapshot) -> View:
    """The graph at a snapshot, with the catalog of its schema."""
    return View(snapshot, catalogs.of(snapshot.schema_digest), data_at(store, snapshot))
