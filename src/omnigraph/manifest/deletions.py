"""Interrupted deletions of branches: the next process finishes or withdraws them.

A branch is deleted at the moment it ends on its own ref (docs/decisions/0008): a deletion that was
killed before has not happened.
"""

from __future__ import annotations

from datetime import datetime

from omnigraph.errors import ConflictError
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.reader import Manifest
from omnigraph.model.names import BranchName


def finish_deletion(manifest: Manifest, name: BranchName, now: datetime) -> Branch | None:
    """Finish an interrupted deletion of a branch that has ended, or withdraw it.

    Returns:
        The branch's record as it was just read; None if it is main, or was changed here.
    """
    branch = manifest.names.find(name)
    if branch is None or not branch.is_ending:
        return branch
    if not branch.is_abandoned(now):
        raise being_deleted_error(name)
    if manifest.open_ref(branch.ref).is_ended:
        manifest.names.retire(branch, now, head=branch.ending_head)
    else:
        manifest.names.withdraw(branch)
    return None


def being_deleted_error(name: BranchName) -> ConflictError:
    """The error for a writer of a branch that another process is deleting."""
    message = f"branch {name} is being deleted"
    return ConflictError(message, hint="check whether it still exists, then try again")
