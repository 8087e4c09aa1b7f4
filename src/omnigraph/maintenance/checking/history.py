"""Branches and their histories: names and refs agree, and every commit has its parents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from omnigraph.errors import BranchNotFoundError, OmnigraphError
from omnigraph.maintenance.checking.report import BACKUP, Finding, Invariant, Notebook
from omnigraph.manifest.branches import Branch, record_path
from omnigraph.manifest.format import CURRENT
from omnigraph.manifest.layout import MANIFEST
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName


@dataclass(frozen=True, slots=True)
class Found:
    """A branch that can be read, and the format that its manifest has."""

    snapshot: Snapshot
    stamp: int


def check_branch(manifest: Manifest, name: BranchName, notebook: Notebook) -> Found | None:
    """The branch as it is now, if it can be read at all and is still there."""
    notebook.count(Invariant.BRANCH)
    subject, place = f"branch {name}", record_path(name)
    try:
        branch = manifest.names.find(name)
        if branch is not None:
            _check_refs(manifest, branch, notebook)
        opened = manifest.open(name)
        snapshot = manifest.snapshot(opened, name)
    except BranchNotFoundError:
        # It went while we looked.
        return None
    except OmnigraphError as failure:
        notebook.fail(Invariant.BRANCH, subject, MANIFEST if name.is_main else place, failure)
        return None
    if opened.stamp < CURRENT:
        problem = f"its manifest has format {opened.stamp}, and this release writes {CURRENT}"
        step = "nothing: the next write to it brings it to the newest format"
        notebook.note(Finding(Invariant.BRANCH, subject, MANIFEST, problem, step))
    if branch is not None and branch.is_ending:
        problem = "somebody began to delete it"
        step = "nothing: the next write to it, or 'omnigraph cleanup', finishes that"
        notebook.note(Finding(Invariant.BRANCH, subject, place, problem, step))
    return Found(snapshot, opened.stamp)


def _check_refs(manifest: Manifest, branch: Branch, notebook: Notebook) -> None:
    refs = manifest.store.refs.list(MANIFEST)
    for ref, what in ((branch.ref, "carries it"), (branch.source_ref, "it was made from")):
        if ref is not None and ref not in refs:
            # Unless the branch itself is gone by now.
            manifest.names.find(branch.name)
            problem = f"the ref {ref} of the manifest, which {what}, is not there"
            place = record_path(branch.name)
            subject = f"branch {branch.name}"
            notebook.find(Finding(Invariant.BRANCH, subject, place, problem, BACKUP))


def check_history(
    manifest: Manifest, snapshot: Snapshot, notebook: Notebook
) -> dict[CommitId, Commit]:
    """The commits that a branch has, its own and those it merged; none if they cannot be read."""
    place = f"branch {snapshot.branch}"
    commits: dict[CommitId, Commit] = {}
    try:
        for each in manifest.history(snapshot).every():
            notebook.count(Invariant.HISTORY)
            if each.commit_id in commits:
                problem = "it stands twice in the history"
                notebook.find(_of_commit(each.commit_id, place, problem))
            commits[each.commit_id] = each
    except OmnigraphError as failure:
        notebook.fail(Invariant.HISTORY, place, MANIFEST, failure)
        return {}
    for commit_id, problem in broken_links(snapshot.head.commit_id, commits.values()):
        notebook.find(_of_commit(commit_id, place, problem))
    for commit in commits.values():
        if commit.merged_parent is not None and commit.merged_parent not in commits:
            problem = f"it merged {commit.merged_parent}, which an earlier release removed"
            step = "nothing: the rows that it brought are here"
            found = Finding(Invariant.HISTORY, f"commit {commit.commit_id}", place, problem, step)
            notebook.note(found)
    return commits


def broken_links(head: CommitId, commits: Iterable[Commit]) -> Iterator[tuple[CommitId, str]]:
    """The commits of one history that do not hang together, each with what is wrong."""
    parents = {each.commit_id: each.parent for each in commits}
    if head not in parents:
        yield head, "it is the head, and is not in the history"
    for commit_id, parent in parents.items():
        if parent is not None and parent not in parents:
            yield commit_id, f"its parent {parent} is not in the history"
    roots = [commit_id for commit_id, parent in parents.items() if parent is None]
    for extra in roots[1:]:
        yield extra, f"it has no parent, and {roots[0]} is the first commit"
    walked: set[CommitId] = set()
    at: CommitId | None = head
    while at in parents:
        if at in walked:
            yield at, "it is its own ancestor"
            return
        walked.add(at)
        at = parents[at]


def _of_commit(commit_id: CommitId, place: str, problem: str) -> Finding:
    return Finding(Invariant.HISTORY, f"commit {commit_id}", place, problem, BACKUP)
