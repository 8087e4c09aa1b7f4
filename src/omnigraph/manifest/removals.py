"""Removed data: tells a storage failure from a branch that was deleted, or an expired commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from omnigraph.errors import (
    BranchNotFoundError,
    CommitLetGoError,
    ConflictError,
    ErrorCode,
    NotFoundError,
    OmnigraphError,
    StorageError,
)
from omnigraph.manifest.branches import Branches
from omnigraph.manifest.layout import MANIFEST
from omnigraph.manifest.let_go import LetGoCommits
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.store import Store


@contextmanager
def detect_removal(store: Store, *snapshots: Snapshot) -> Iterator[None]:
    """Distinguish a storage failure from snapshots whose data was removed while they were read.

    For readers. The transaction reports the same to a writer, whose work is lost with its branch.
    """
    try:
        yield
    except (StorageError, NotFoundError) as failure:
        if isinstance(failure, StorageError) or failure.code is ErrorCode.NOT_FOUND:
            for snapshot in snapshots:
                if (removal := find_removal(store, snapshot)) is not None:
                    raise removal from failure
        raise


def find_removal(store: Store, snapshot: Snapshot) -> OmnigraphError | None:
    """Why a snapshot cannot be read, if its branch was deleted or its commit expired."""
    with suppress(StorageError):
        if snapshot.ref is not None and not store.refs.exists(MANIFEST, snapshot.ref):
            return _deletion_error(store, snapshot)
    return find_let_go(store, snapshot)


def find_let_go(store: Store, snapshot: Snapshot) -> CommitLetGoError | None:
    """The error for a snapshot whose commit expired; None if it did not, or is unknown."""
    with suppress(StorageError):
        try:
            LetGoCommits(store.objects).require(snapshot.head)
        except CommitLetGoError as gone:
            return gone
    return None


def _deletion_error(store: Store, snapshot: Snapshot) -> OmnigraphError:
    try:
        Branches(store).find(snapshot.branch)
    except BranchNotFoundError as missing:
        return missing
    message = f"branch {snapshot.branch} was deleted and made again while it was read"
    return ConflictError(message, hint="read it again", branch=snapshot.branch)
