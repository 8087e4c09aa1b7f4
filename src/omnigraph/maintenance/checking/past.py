"""Checks of the past: the data of older commits can still be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from omnigraph.errors import CommitLetGoError, CommitNotFoundError, OmnigraphError
from omnigraph.maintenance.checking.let_go import LetGoChecks
from omnigraph.maintenance.checking.report import BACKUP, Finding, Invariant, Notebook
from omnigraph.manifest.layout import MANIFEST
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId


class Past:
    """Walks the histories of several branches; a commit that they share is read once."""

    def __init__(self, manifest: Manifest, notebook: Notebook, let_go: LetGoChecks) -> None:
        self._manifest = manifest
        self._notebook = notebook
        self._let_go = let_go
        self._walked: set[CommitId] = set()

    def snapshots(self, commits: Mapping[CommitId, Commit]) -> Iterator[Snapshot]:
        """The snapshot of each commit of a history; an unreadable one is reported.

        Commits that expired are left out: nothing is left of them.
        """
        for commit in commits.values():
            if commit.commit_id in self._walked or self._let_go.has(commit):
                continue
            self._walked.add(commit.commit_id)
            self._notebook.count(Invariant.PAST)
            snapshot = self._read(commit)
            if snapshot is not None:
                yield snapshot

    def _read(self, commit: Commit) -> Snapshot | None:
        place = f"branch {commit.branch}, {MANIFEST}, version {commit.manifest_version}"
        subject = f"commit {commit.commit_id}"
        try:
            return self._manifest.at(commit)
        except CommitLetGoError:
            # It expired during the check.
            return None
        except OmnigraphError as failure:
            if commit.has_known_ref or not isinstance(failure, CommitNotFoundError):
                self._notebook.fail(Invariant.PAST, subject, place, failure, step=BACKUP)
                return None
        problem = "its branch was deleted by an earlier release, which removed what it reads"
        step = "nothing: the rows that were merged are where they were merged"
        self._notebook.note(Finding(Invariant.PAST, subject, place, problem, step))
        return None
