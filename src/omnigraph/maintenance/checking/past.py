"""The past: what older commits read is still there, for whoever travels back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from omnigraph.errors import OmnigraphError
from omnigraph.maintenance.checking.report import BACKUP, Invariant, Notebook
from omnigraph.manifest.layout import MANIFEST
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId


class Past:
    """Walks histories of several branches; what they have in common is walked once."""

    def __init__(self, manifest: Manifest, notebook: Notebook) -> None:
        self._manifest = manifest
        self._notebook = notebook
        self._walked: set[CommitId] = set()

    def snapshots(self, head: CommitId, commits: Mapping[CommitId, Commit]) -> Iterator[Snapshot]:
        """What each commit reads, from a head to the first; one that cannot be read is told.

        Commits that were only merged are not asked for: they go with the branch they were made on.
        """
        commit = commits.get(head)
        while commit is not None and commit.commit_id not in self._walked:
            self._walked.add(commit.commit_id)
            self._notebook.count(Invariant.PAST)
            found = self._read(commit)
            if found is not None:
                yield found
            commit = None if commit.parent is None else commits.get(commit.parent)

    def _read(self, commit: Commit) -> Snapshot | None:
        try:
            return self._manifest.at(commit)
        except OmnigraphError as failure:
            # Unless its branch went while we looked.
            if commit.branch in self._manifest.branches():
                place = f"branch {commit.branch}, {MANIFEST}, version {commit.manifest_version}"
                subject = f"commit {commit.commit_id}"
                self._notebook.fail(Invariant.PAST, subject, place, failure, step=BACKUP)
            return None
