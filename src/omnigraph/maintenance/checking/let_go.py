"""Checks of the commits that expired: the record can be read, and nothing needs them."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.errors import OmnigraphError
from omnigraph.maintenance.checking.report import BACKUP, Finding, Invariant, Notebook
from omnigraph.manifest.branches import record_path
from omnigraph.manifest.layout import RETENTION
from omnigraph.manifest.let_go import LetGoRecord
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import Commit
from omnigraph.wording import count_of


class LetGoChecks:
    """The record of the commits that expired, read once for a check."""

    def __init__(self, manifest: Manifest, notebook: Notebook) -> None:
        self._notebook = notebook
        try:
            self._record = manifest.let_go.read()
        except OmnigraphError as failure:
            notebook.fail(Invariant.PAST, RETENTION, RETENTION, failure)
            self._record = LetGoRecord({})
        for path, unreadable in self._record.unreadable.items():
            notebook.fail(Invariant.PAST, path, path, unreadable, step=BACKUP)

    def has(self, commit: Commit) -> bool:
        """Whether a commit expired."""
        return self._record.find(commit) is not None

    def check_tip(self, snapshot: Snapshot) -> None:
        """Report a branch whose newest commit expired: its creation was interrupted."""
        gone = self._record.find(snapshot.head)
        if gone is not None:
            problem = f"it starts at commit {snapshot.head.commit_id}, which expired on {gone}"
            step = f"delete it: 'omnigraph branch delete {snapshot.branch}'"
            place = record_path(snapshot.branch)
            subject = f"branch {snapshot.branch}"
            self._notebook.find(Finding(Invariant.BRANCH, subject, place, problem, step))

    def note_history(self, branch: str, commits: Iterable[Commit]) -> None:
        """Note how many commits of a branch's history expired."""
        count = sum(map(self.has, commits))
        if count:
            problem = f"{count_of(count, 'commit')} expired, and can no longer be read"
            step = "nothing: 'omnigraph log' shows which"
            subject = f"branch {branch}"
            self._notebook.note(Finding(Invariant.PAST, subject, RETENTION, problem, step))
