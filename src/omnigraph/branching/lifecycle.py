"""Creating, listing and deleting branches.

The name is the authority (`manifest.branches`): a branch exists from the moment its name is
registered until the name is taken away. What lies around it, refs of the manifest and of tables, is
made before and reclaimed after, and harms nobody when a process dies in between.
"""

from __future__ import annotations

import logging
from typing import Final

from omnigraph.clock import Clock
from omnigraph.errors import (
    BranchNotFoundError,
    ConflictError,
    ErrorCode,
    InvalidNameError,
    NotAllowedError,
    OmnigraphError,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.layout import MANIFEST
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.names import BranchName
from omnigraph.storage.store import Store

_log: Final = logging.getLogger(__name__)


def create(manifest: Manifest, clock: Clock, name: BranchName, source: Snapshot) -> Branch:
    """Start a branch at a snapshot; copies no rows and costs the same however many there are.

    Raises:
        AlreadyExistsError: the graph has a branch of that name. It is untouched.
        InvalidNameError: a branch above or below the name by path exists, or the name is main's.
        BranchNotFoundError: the branch that the snapshot is of went meanwhile.
    """
    _require_free(manifest, name)
    source_ref = manifest.names.ref_of(source.branch)
    branch = Branch(name, clock.ulid(), source_ref, source.head.commit_id, clock.now())
    refs = manifest.store.refs
    refs.start(MANIFEST, branch.ref, source=source_ref, version=source.manifest_version)
    hit(Failpoint.BRANCH_AFTER_REF)
    try:
        manifest.names.register(branch)
        hit(Failpoint.BRANCH_AFTER_NAME)
        _require_source(manifest, source, branch)
    except OmnigraphError:
        _reclaim_ref(manifest.store, MANIFEST, branch.ref)
        raise
    return branch


def delete(manifest: Manifest, name: BranchName) -> None:
    """End a branch: its name first, then, as far as possible, what only it used.

    Raises:
        BranchNotFoundError: the graph has no such branch.
        NotAllowedError: it is main, or other branches build on it.
    """
    if name.is_main:
        message = "main cannot be deleted"
        raise NotAllowedError(message, hint="delete the graph's directory instead")
    branch = manifest.names.find(name)
    assert branch is not None, "only main is not found"
    _require_unused(manifest, branch)
    snapshot = manifest.current(name)
    manifest.names.unregister(name)
    hit(Failpoint.BRANCH_AFTER_UNREGISTER)
    _require_unused_still(manifest, branch)
    for pin in snapshot.pins.values():
        if pin.ref is not None and branch.owns(pin.ref):
            _reclaim_ref(manifest.store, pin.location, pin.ref)
    hit(Failpoint.BRANCH_AFTER_FORKS)
    _reclaim_ref(manifest.store, MANIFEST, branch.ref)


def _require_free(manifest: Manifest, name: BranchName) -> None:
    if name.is_main:
        message = "every graph has a branch main already"
        raise InvalidNameError(message, hint="choose another name", code=ErrorCode.BRANCH_EXISTS)
    for other in manifest.branches():
        if name.contains(other) or other.contains(name):
            message = f"a branch {name} cannot stand beside {other}: one lies below the other"
            raise InvalidNameError(message, hint="choose a name that shares no path with it")


def _require_source(manifest: Manifest, source: Snapshot, branch: Branch) -> None:
    """Undo the branch if its source was deleted before anybody could see that it is in use."""
    try:
        still = manifest.names.ref_of(source.branch) == branch.source_ref
    except BranchNotFoundError:
        still = False
    if not still:
        manifest.names.unregister(branch.name)
        message = f"branch {source.branch} was deleted while {branch.name} was made from it"
        raise ConflictError(message, hint="make it from another branch")


def _require_unused(manifest: Manifest, branch: Branch) -> None:
    users = sorted(each.name for each in manifest.names.every() if each.source_ref == branch.ref)
    if users:
        message = f"branch {branch.name} cannot be deleted: {', '.join(users)} build on it"
        hint = f"delete {users[0]} first"
        raise NotAllowedError(message, hint=hint, code=ErrorCode.BRANCH_IN_USE)


def _require_unused_still(manifest: Manifest, branch: Branch) -> None:
    """Give the name back if a branch was made from this one while it was being deleted."""
    try:
        _require_unused(manifest, branch)
    except NotAllowedError:
        manifest.names.register(branch)
        raise


def _reclaim_ref(store: Store, location: str, ref: str) -> None:
    """Remove a ref that nothing names any more; what fails is left to `cleanup`."""
    try:
        store.refs.delete(location, ref)
    except OmnigraphError as failure:
        _log.warning("the ref %s of %s stays until the next cleanup: %s", ref, location, failure)
