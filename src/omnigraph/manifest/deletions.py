"""Interrupted deletions of branches: the next process finishes or withdraws them."""

from __future__ import annotations

from datetime import datetime

from omnigraph.errors import ConflictError
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.reader import Manifest
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName


def finish_deletion(manifest: Manifest, name: BranchName, now: datetime) -> Branch | None:
    """Finish an interrupted deletion, or withdraw it if it is no longer allowed.

    A branch is kept if other branches were created from it, or if it was to be deleted at one
    commit and is now at another.

    Returns:
        The branch's record as it was just read; None if it is main, or was changed here.

    Raises:
        BranchNotFoundError: the graph has no such branch.
        ConflictError: another process is deleting it right now. It is unchanged.
    """
    branch = manifest.names.find(name)
    if branch is None or not branch.is_ending:
        return branch
    if not branch.is_abandoned(now):
        raise being_deleted_error(name)
    if manifest.names.users_of(branch) or has_moved(manifest, branch, branch.ending_head):
        manifest.names.withdraw(branch)
        return None
    manifest.names.retire(branch, now, head=branch.ending_head)
    if has_moved(manifest, branch, branch.ending_head):
        manifest.names.reinstate(branch)
    return None


def being_deleted_error(name: BranchName) -> ConflictError:
    """The error for a writer of a branch that another process is deleting."""
    message = f"branch {name} is being deleted"
    return ConflictError(message, hint="look whether it is still there, then try again")


def has_moved(manifest: Manifest, branch: Branch, head: CommitId | None) -> bool:
    """Whether a branch, with or without its name, is at another commit than `head`."""
    if head is None:
        return False
    tip = manifest.snapshot(manifest.open_ref(branch.ref), branch.name)
    return tip.head.commit_id != head
