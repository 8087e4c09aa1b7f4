"""Repair: resets table heads that no write explains to the versions that their branches pin.

No writer of ours leaves a head beyond its pin without a sidecar: either another program wrote to
the table directly, or a sidecar was deleted. The purpose of such a version is unknown, so it
is never published: the pinned rows become the newest again, and writes can continue.
"""

from __future__ import annotations

from contextlib import suppress

from omnigraph.errors import BranchNotFoundError
from omnigraph.maintenance.drift import HeadState, heads_of
from omnigraph.maintenance.results import Drift, RepairResult
from omnigraph.manifest.reader import Manifest
from omnigraph.model.names import BranchName
from omnigraph.model.tables import TablePin
from omnigraph.recovery.sweep import Recovery
from omnigraph.storage import heads


def repair(
    manifest: Manifest, recovery: Recovery, branch: BranchName | None, *, dry_run: bool
) -> RepairResult:
    """Make the pinned rows of every drifted table the newest again. No answer changes.

    Args:
        branch: Only this one; all branches when None.
    """
    if dry_run:
        recovery.sidecars.find().require_readable()
    else:
        # What an interrupted write left is not drift: recovery finishes the write first.
        recovery.heal()
    if branch is not None:
        return _repair_branch(manifest, recovery, branch, dry_run=dry_run)
    result = RepairResult()
    for name in manifest.branches():
        # A branch that is deleted meanwhile needs no repair: nothing writes to it any more.
        with suppress(BranchNotFoundError):
            more = _repair_branch(manifest, recovery, name, dry_run=dry_run)
            result = RepairResult(
                (*result.drifts, *more.drifts), (*result.commit_ids, *more.commit_ids)
            )
    return result


def _repair_branch(
    manifest: Manifest, recovery: Recovery, branch: BranchName, *, dry_run: bool
) -> RepairResult:
    table_heads = heads_of(manifest, recovery, manifest.current(branch))
    drifted = [head for head in table_heads if head.state is HeadState.DRIFTED]
    drifts = tuple(_drift(manifest, branch, head.pin, head.version) for head in drifted)
    if not drifted or dry_run:
        return RepairResult(drifts)
    entry = recovery.restore_pins(branch, [head.pin for head in drifted])
    commit_id = None if entry is None else entry.commit_id
    return RepairResult(drifts, () if commit_id is None else (commit_id,))


def _drift(manifest: Manifest, branch: BranchName, pin: TablePin, head: int) -> Drift:
    table = manifest.store.tables.open(pin.location, ref=pin.ref, version=head)
    author = heads.author_of(table)
    made_by = None if author is None else author.writer
    return Drift(str(branch), str(pin.key), pin.location, pin.version, head, made_by)
