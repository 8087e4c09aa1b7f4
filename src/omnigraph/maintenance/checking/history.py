"""Checks of branches and their histories: names and refs agree, every commit has its parents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.errors import BranchNotFoundError, OmnigraphError
from omnigraph.maintenance.checking.report import BACKUP, Finding, Invariant, Notebook
from omnigraph.manifest.branches import Branch, record_path
from omnigraph.manifest.layout import MANIFEST
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName


def check_branch(manifest: Manifest, name: BranchName, notebook: Notebook) -> Snapshot | None:
    """The branch as it is now; None if it cannot be read or was deleted."""
    notebook.count(Invariant.BRANCH)
    subject, place = f"branch {name}", record_path(name)
    try:
        branch = manifest.names.find(name)
        if branch is not None:
            _check_refs(manifest, branch, notebook)
        snapshot = manifest.snapshot(manifest.open(name), name)
    except BranchNotFoundError:
        # It was deleted during the check.
        return None
    except OmnigraphError as failure:
        notebook.fail(Invariant.BRANCH, subject, MANIFEST if name.is_main else place, failure)
        return None
    if branch is not None and branch.is_ending:
        problem = "its deletion was not completed"
        step = "nothing: the next write to it, or 'omnigraph cleanup', finishes that"
        notebook.note(Finding(Invariant.BRANCH, subject, place, problem, step))
    return snapshot


def _check_refs(manifest: Manifest, branch: Branch, notebook: Notebook) -> None:
    refs = manifest.store.refs.list(MANIFEST)
    for ref, what in ((branch.ref, "carries it"), (branch.source_ref, "it was made from")):
        if ref is not None and ref not in refs:
            # Raises if the branch itself was deleted meanwhile.
            manifest.names.find(branch.name)
            problem = f"the ref {ref} of the manifest, which {what}, is not there"
            place = record_path(branch.name)
            subject = f"branch {branch.name}"
            notebook.find(Finding(Invariant.BRANCH, subject, place, problem, BACKUP))


def check_history(
    manifest: Manifest, snapshot: Snapshot, notebook: Notebook
) -> dict[CommitId, Commit]:
    """The commits of a branch, its own and merged ones; empty if they cannot be read."""
    place = f"branch {snapshot.branch}"
    commits: dict[CommitId, Commit] = {}
    try:
        for commit in manifest.history(snapshot).every():
            notebook.count(Invariant.HISTORY)
            if commit.commit_id in commits:
                problem = "it occurs twice in the history"
                notebook.find(_commit_finding(commit.commit_id, place, problem))
            commits[commit.commit_id] = commit
    except OmnigraphError as failure:
        notebook.fail(Invariant.HISTORY, place, MANIFEST, failure)
        return {}
    for commit_id, problem in broken_links(snapshot.head.commit_id, commits.values()):
        notebook.find(_commit_finding(commit_id, place, problem))
    for commit in commits.values():
        if commit.merged_parent is not None and commit.merged_parent not in commits:
            problem = f"it merged {commit.merged_parent}, which an earlier release removed"
            step = "nothing: the rows that it brought are here"
            finding = Finding(Invariant.HISTORY, f"commit {commit.commit_id}", place, problem, step)
            notebook.note(finding)
    return commits


def broken_links(head: CommitId, commits: Iterable[Commit]) -> Iterator[tuple[CommitId, str]]:
    """The commits of one history with a broken link, each with the problem."""
    parents = {commit.commit_id: commit.parent for commit in commits}
    if head not in parents:
        yield head, "it is the head, and is not in the history"
    for commit_id, parent in parents.items():
        if parent is not None and parent not in parents:
            yield commit_id, f"its parent {parent} is not in the history"
    roots = [commit_id for commit_id, parent in parents.items() if parent is None]
    for extra in roots[1:]:
        yield extra, f"it has no parent, and {roots[0]} is the first commit"
    visited: set[CommitId] = set()
    ancestor: CommitId | None = head
    while ancestor in parents:
        if ancestor in visited:
            yield ancestor, "it is its own ancestor"
            return
        visited.add(ancestor)
        ancestor = parents[ancestor]


def _commit_finding(commit_id: CommitId, place: str, problem: str) -> Finding:
    return Finding(Invariant.HISTORY, f"commit {commit_id}", place, problem, BACKUP)
