"""Creation and deletion of branches.

The name is the authority (`manifest.branches`): a branch exists from the moment its name is
registered until the name is removed. Its ref of the manifest is created before, and is kept
afterwards: other branches may have merged its commits. `cleanup` deletes what nothing needs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from omnigraph.clock import Clock, is_ulid
from omnigraph.errors import (
    AlreadyExistsError,
    BranchNotFoundError,
    CommitNotFoundError,
    ConflictError,
    ErrorCode,
    InvalidNameError,
    NotAllowedError,
    OmnigraphError,
    StaleHeadError,
    StorageError,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.limits import LEASE_SECONDS
from omnigraph.manifest.branches import Branch, TakenNames
from omnigraph.manifest.deletions import finish_deletion
from omnigraph.manifest.layout import MANIFEST
from omnigraph.manifest.publisher import end
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.storage.store import Store

_log: Final = logging.getLogger(__name__)


def create(
    manifest: Manifest,
    clock: Clock,
    name: BranchName,
    source: Snapshot,
    *,
    tip_since: datetime | None = None,
) -> Branch:
    """Create a branch at a snapshot; copies no rows, and the cost does not depend on their number.

    Args:
        tip_since: A time from which on the snapshot was read as the newest of its branch; None if
            it is another one. Retention lets no commit go that was the newest a moment ago.
    """
    _require_free(name)
    branch = Branch(name, clock.ulid(), source.ref, source.head.commit_id, clock.now())
    try:
        handle = manifest.store.refs.mint(
            MANIFEST, branch.ref, source=source.ref, version=source.manifest_version
        )
        manifest.store.tables.adopt(MANIFEST, branch.ref, handle)
    except StorageError:
        manifest.let_go.require(source.head)
        _require_source(manifest, clock, source, name)
        raise
    hit(Failpoint.BRANCH_AFTER_REF)
    try:
        _require_young(clock, branch)
        manifest.names.register(branch)
    except (AlreadyExistsError, ConflictError):
        # Not if storage failed: then the name may be registered nevertheless.
        _reclaim_ref(manifest.store, MANIFEST, branch.ref)
        raise
    hit(Failpoint.BRANCH_AFTER_NAME)
    try:
        # Of two created at once above and below each other, at least one sees the other here.
        taken = manifest.names.taken_names()
        _require_apart(name, taken.names)
        # Who creates a tag puts it first, too, and then looks for a branch of its name.
        _require_no_tag(manifest, name)
        # A deletion of the source first marks it, and then looks for branches created from it.
        _require_source(manifest, clock, source, name, taken)
        if tip_since is None or clock.now() - tip_since > timedelta(seconds=LEASE_SECONDS):
            # A cleanup first marks the commit, and then looks for branches that start at it.
            manifest.let_go.claim(source.head)
    except OmnigraphError:
        # Whoever found the name meanwhile must not write to what is removed.
        with suppress(OmnigraphError):
            end(manifest, clock, branch)
        manifest.names.unregister(branch, clock.now())
        _reclaim_ref(manifest.store, MANIFEST, branch.ref)
        raise
    return branch


def delete(manifest: Manifest, clock: Clock, name: BranchName) -> None:
    """Remove a branch's name; its refs are kept for branches that merged it, and for `cleanup`."""
    _delete(manifest, clock, require_deletable(manifest, name))


def delete_unmoved(manifest: Manifest, clock: Clock, branch: Branch, head: CommitId) -> None:
    """Delete this very branch, and no later one of its name, if it is still at a commit."""
    if manifest.names.ref_of(branch.name) != branch.ref:
        message = f"branch {branch.name} was deleted, and another branch has its name now"
        raise BranchNotFoundError(message, hint="see 'omnigraph branch list'")
    require_head(manifest.current(branch.name), head)
    _delete(manifest, clock, branch, head)


def _delete(manifest: Manifest, clock: Clock, branch: Branch, head: CommitId | None = None) -> None:
    manifest.names.mark(branch, clock.now(), head=head)
    hit(Failpoint.BRANCH_AFTER_MARK)
    try:
        _require_unused(manifest, branch)
    except (OmnigraphError, KeyboardInterrupt) as failure:
        _withdraw(manifest, branch, failure)
        raise
    # If this fails, the branch stays marked, and a later writer finds out whether it has ended.
    if not end(manifest, clock, branch, head=head):
        stale = _stale_head_error(branch.name, head)
        _withdraw(manifest, branch, stale)
        raise stale
    hit(Failpoint.BRANCH_AFTER_END)
    manifest.names.retire(branch, clock.now(), head=head)
    hit(Failpoint.BRANCH_AFTER_UNREGISTER)


def _withdraw(manifest: Manifest, branch: Branch, failure: BaseException) -> None:
    try:
        manifest.names.withdraw(branch)
    except OmnigraphError as second:
        note = f"branch {branch.name} stays marked as being deleted: {second.message}"
        failure.add_note(note)


def require_deletable(manifest: Manifest, name: BranchName) -> Branch:
    """The branch, if it may be deleted now."""
    if name.is_main:
        message = "main cannot be deleted"
        raise NotAllowedError(message, hint="it stays as long as its graph; others can be deleted")
    branch = manifest.names.find(name)
    assert branch is not None, "only main is not found"
    _require_unused(manifest, branch)
    return branch


def _require_free(name: BranchName) -> None:
    if name.is_main:
        message = "every graph has a branch main already"
        raise AlreadyExistsError(message, hint="choose another name", code=ErrorCode.BRANCH_EXISTS)
    if is_ulid(name):
        message = f"{name} is not a valid branch name: it looks like a commit id"
        raise InvalidNameError(message, hint="choose another name, such as one with a word in it")


def _require_no_tag(manifest: Manifest, name: BranchName) -> None:
    if manifest.tags.exists(name):
        message = (
            f"the graph {manifest.store.root.uri} has a tag {name}; a branch cannot have the "
            "same name"
        )
        hint = "choose another name, or delete that tag first"
        raise AlreadyExistsError(message, hint=hint, code=ErrorCode.TAG_EXISTS)


def _require_apart(name: BranchName, others: Iterable[BranchName]) -> None:
    for other in others:
        if name.contains(other) or other.contains(name):
            message = (
                f"branch {name} cannot exist together with {other}: one name is a path below "
                "the other"
            )
            raise InvalidNameError(message, hint="choose a name that shares no path with it")


def _require_young(clock: Clock, branch: Branch) -> None:
    """Reject a ref that has had no name for so long that `cleanup` may delete it."""
    assert branch.created_at is not None, "it was just created"
    if clock.now() - branch.created_at > timedelta(seconds=LEASE_SECONDS):
        message = f"creating branch {branch.name} took longer than {LEASE_SECONDS:.0f} s"
        raise ConflictError(message, hint="try again")


def _has_name(manifest: Manifest, clock: Clock, source: Snapshot, taken: TakenNames | None) -> bool:
    """Whether the snapshot's branch still has its name, and is not being deleted."""
    if source.ref is None:
        return True
    with suppress(BranchNotFoundError):
        branch = manifest.names.find(source.branch, taken=taken)
        if branch is None or branch.ref != source.ref:
            return False
        if branch.is_ending:
            finish_deletion(manifest, source.branch, clock.now())
            return manifest.names.ref_of(source.branch) == source.ref
        return True
    return False


def _require_source(
    manifest: Manifest,
    clock: Clock,
    source: Snapshot,
    made: BranchName,
    taken: TakenNames | None = None,
) -> None:
    """Reject a source branch that is gone, unless another branch has its commit in its history.

    Args:
        made: The new branch, which is not searched.
        taken: The names after it was registered.
    """
    if _has_name(manifest, clock, source, taken):
        return
    try:
        manifest.find(source.head.commit_id, excluding=made)
    except CommitNotFoundError as missing:
        message = f"branch {source.branch} is being deleted"
        hint = "start from another branch, or finish deleting this one"
        raise ConflictError(message, hint=hint) from missing


def _require_unused(manifest: Manifest, branch: Branch) -> None:
    users = manifest.names.users_of(branch)
    if users:
        builds = "builds" if len(users) == 1 else "build"
        message = f"branch {branch.name} cannot be deleted: {', '.join(users)} {builds} on it"
        hint = f"delete {users[0]} first"
        raise NotAllowedError(message, hint=hint, code=ErrorCode.BRANCH_IN_USE)


def require_head(snapshot: Snapshot, expected: CommitId) -> None:
    """Refuse to delete a branch that is not at a commit."""
    actual = snapshot.head.commit_id
    if expected != actual:
        message = (
            f"branch {snapshot.branch} was not deleted: it is at {actual}, expected {expected}"
        )
        raise StaleHeadError(message, expected=expected, actual=actual)


def _stale_head_error(name: BranchName, expected: CommitId | None) -> StaleHeadError:
    message = f"branch {name} was not deleted: it is no longer at {expected}"
    return StaleHeadError(message, expected=expected)


def _reclaim_ref(store: Store, location: str, ref: str) -> None:
    """Delete a ref that nothing refers to; failures are left to `cleanup`."""
    try:
        store.refs.delete(location, ref)
    except OmnigraphError as failure:
        _log.warning("the ref %s of %s stays until the next cleanup: %s", ref, location, failure)
