"""Repair: brings table heads that nobody answers for back to what their branches pin.

No writer of ours leaves a head beyond its pin without a sidecar. It takes a program that wrote to a
table behind the graph's back, or somebody who deleted a sidecar. What it was to become cannot be
told, so it is never published: the pinned rows are made the newest again, and writes go on.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from omnigraph.errors import BranchNotFoundError
from omnigraph.maintenance.drift import Standing, heads_of
from omnigraph.manifest.reader import Manifest
from omnigraph.model.commits import OperationKind
from omnigraph.model.names import BranchName
from omnigraph.model.tables import TablePin
from omnigraph.recovery.sweep import Recovery
from omnigraph.storage import heads


@dataclass(frozen=True, slots=True)
class Drift:
    """One head that nobody answers for.

    Attributes:
        table_key: The type, such as `node:Person`.
        location: The table, below the graph's root.
        pinned: The version that readers see, before and after.
        head: The newest version; its rows stay there, and no reader of the graph sees them.
        made_by: What the version says of its writer; None if nothing.
    """

    branch: str
    table_key: str
    location: str
    pinned: int
    head: int
    made_by: OperationKind | None


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What a repair did, or would do.

    Attributes:
        drifts: The heads that were beyond their pins.
        commit_ids: The commits that say so, one for each branch; none in a dry run.
    """

    drifts: tuple[Drift, ...] = ()
    commit_ids: tuple[str, ...] = ()


def repair(
    manifest: Manifest, recovery: Recovery, branch: BranchName | None, *, dry_run: bool
) -> RepairResult:
    """Make the pinned rows of every table that drifted the newest again. No answer changes.

    Args:
        branch: Only this one; all branches when None.

    Raises:
        RecoveryNeededError: a sidecar cannot be read, and might answer for any head.
        ConflictError: others kept a table busy.
        BranchNotFoundError: the graph has no such branch.
    """
    if dry_run:
        recovery.sidecars.find().require_readable()
    else:
        # What an interrupted write left is not drift: it is brought to its end first.
        recovery.heal()
    if branch is not None:
        return _repaired(manifest, recovery, branch, dry_run=dry_run)
    result = RepairResult()
    for each in manifest.branches():
        # One that is deleted while we look is written to by nobody any more.
        with suppress(BranchNotFoundError):
            found = _repaired(manifest, recovery, each, dry_run=dry_run)
            result = RepairResult(
                (*result.drifts, *found.drifts), (*result.commit_ids, *found.commit_ids)
            )
    return result


def _repaired(
    manifest: Manifest, recovery: Recovery, branch: BranchName, *, dry_run: bool
) -> RepairResult:
    standing = heads_of(manifest, recovery, manifest.current(branch))
    found = [each for each in standing if each.standing is Standing.DRIFTED]
    drifts = tuple(_drift(manifest, branch, each.pin, each.version) for each in found)
    if not found or dry_run:
        return RepairResult(drifts)
    entry = recovery.restore_pins(branch, [each.pin for each in found])
    commit_id = None if entry is None else entry.commit_id
    return RepairResult(drifts, () if commit_id is None else (commit_id,))


def _drift(manifest: Manifest, branch: BranchName, pin: TablePin, head: int) -> Drift:
    table = manifest.store.tables.open(pin.location, ref=pin.ref, version=head)
    author = heads.author_of(table)
    made_by = None if author is None else author.writer
    return Drift(str(branch), str(pin.key), pin.location, pin.version, head, made_by)
