"""Merges from request to outcome: find the base, decide, and carry it out as one write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial

from omnigraph.changes.graphs import Side
from omnigraph.engine.protocol import Engine
from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.integrity.rules import RuleSet
from omnigraph.limits import CATALOGS_MAX
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.merge.conflicts import Conflict
from omnigraph.merge.graphs import Merge, MergeReport, Outcome
from omnigraph.merge.resolutions import read_resolutions
from omnigraph.model.commits import OperationKind
from omnigraph.model.counts import Counts
from omnigraph.model.names import BranchName
from omnigraph.transaction.protocol import Order, Transactions
from omnigraph.transaction.view import data_at, view_of
from omnigraph.transaction.work import View, Work


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """How a merge ended.

    Attributes:
        source_commit: The commit of the source that was merged.
        commit_id: The commit that it made; None if there was nothing to merge, or in a dry run.
        changes: By type, what it changed in the target.
        conflicts: Only in a dry run: what would have to be decided.
        deleted_source: Whether the source was deleted, as asked; one that moved on stays.
    """

    outcome: Outcome
    source: str
    target: str
    source_commit: str
    commit_id: str | None = None
    changes: Mapping[str, Counts] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    deleted_source: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """How to merge.

    Attributes:
        resolve: `ours`, `theirs`, or the JSON text of resolutions.
        strict_rows: Whether rows that both sides changed conflict even in different properties.
    """

    resolve: str | None = None
    strict_rows: bool = False


class Merges:
    """Merges the branches of one graph."""

    def __init__(
        self, manifest: Manifest, transactions: Transactions, catalogs: Catalogs, engine: Engine
    ) -> None:
        self._manifest = manifest
        self._transactions = transactions
        self._catalogs = catalogs
        self._engine = engine
        self._rule_set = lru_cache(maxsize=CATALOGS_MAX)(self._compile_rules)

    def run(
        self,
        source: BranchName,
        target: BranchName,
        options: Options,
        *,
        actor: str | None = None,
        message: str | None = None,
    ) -> MergeOutcome:
        """Merge one branch, as it is now, into another, in one commit with two parents.

        Raises:
            MergeConflictError: there are conflicts that the options do not decide.
            InvalidInputError: the branch is to be merged into itself, or a resolution is wrong.
        """
        theirs = self._require_other(source, target)
        order = Order(
            OperationKind.MERGE,
            target,
            actor=actor,
            message=f"merge {source} into {target}" if message is None else message,
            merged_parent=theirs.head.commit_id,
        )
        landed = self._transactions.run(order, partial(self._plan, theirs, options))
        report = landed.report
        commit_id = None if landed.commit is None else str(landed.commit.commit_id)
        return MergeOutcome(
            report.outcome, source, target, theirs.head.commit_id, commit_id, report.counts
        )

    def preview(self, source: BranchName, target: BranchName, options: Options) -> MergeOutcome:
        """What a merge would do, with every conflict; nothing is written."""
        theirs = self._require_other(source, target)
        head = theirs.head.commit_id
        view = view_of(self._manifest, self._catalogs, target)
        merge = self._merge(theirs, view, options)
        if merge is None:
            return MergeOutcome(Outcome.ALREADY_UP_TO_DATE, source, target, head)
        report, _ = merge.decide(view)
        if not report.conflicts:
            merge.resolutions.require_used()
        return MergeOutcome(
            report.outcome, source, target, head, None, report.counts, report.conflicts
        )

    def _plan(self, theirs: Snapshot, options: Options, view: View) -> Work[MergeReport]:
        merge = self._merge(theirs, view, options)
        if merge is None:
            return Work(MergeReport(Outcome.ALREADY_UP_TO_DATE))
        return merge.plan(view)

    def _merge(self, theirs: Snapshot, view: View, options: Options) -> Merge | None:
        """The merge to be planned on this view; None if the target has all of the source."""
        parted = self._manifest.divergence(view.snapshot, theirs.head.commit_id)
        base = parted.base
        if base is None:
            message = f"branches {theirs.branch} and {view.snapshot.branch} share no history"
            raise InvalidInputError(message)
        if base.commit_id == theirs.head.commit_id:
            return None
        return Merge(
            self._side(theirs),
            self._side(self._manifest.at_commit(base.commit_id)),
            parted.theirs,
            self._engine,
            self._rule_set(view.snapshot.schema_digest),
            read_resolutions(options.resolve),
            options.strict_rows,
        )

    def _side(self, snapshot: Snapshot) -> Side:
        return Side(snapshot, data_at(self._manifest.store, snapshot))

    def _require_other(self, source: BranchName, target: BranchName) -> Snapshot:
        if source == target:
            message = f"branch {source} cannot be merged into itself"
            raise InvalidInputError(message, code=ErrorCode.INVALID_PARAMETER)
        return self._manifest.current(source)

    def _compile_rules(self, digest: str) -> RuleSet:
        return RuleSet.compile(self._catalogs.of(digest))
