"""Merges from request to outcome: find the base, decide, and carry it out as one write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

from omnigraph.changes.graphs import (
    Filter,
    Side,
    changed_types,
    measure_differences,
    moved_types,
    pair_pins,
)
from omnigraph.choices import EngineName, TableKind
from omnigraph.clock import Clock
from omnigraph.engine.choose import Choice, asked_engine, by_size
from omnigraph.engine.snapshots import data_at
from omnigraph.errors import (
    CommitLetGoError,
    CommitNotFoundError,
    ErrorCode,
    InvalidInputError,
    StaleHeadError,
    StorageError,
)
from omnigraph.integrity.rules import RuleSet
from omnigraph.integrity.violations import Rule
from omnigraph.limits import CATALOGS_MAX
from omnigraph.manifest import schemas
from omnigraph.manifest.lineage import Ancestry, Divergence
from omnigraph.manifest.merge_bases import Base, find_base
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.removals import detect_removal
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.merge.graphs import Merge, MergeReport, SchemaSource
from omnigraph.merge.outcomes import MergeOutcome, Outcome
from omnigraph.merge.resolutions import read_resolutions
from omnigraph.merge.rows import RowMerger
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.schema.catalog import Catalog
from omnigraph.transaction.commit import Transactions
from omnigraph.transaction.view import Admit, View, view_of
from omnigraph.transaction.writes import WritePlan, WriteRequest


@dataclass(frozen=True, slots=True)
class Options:
    """How to merge.

    Attributes:
        resolve: `ours`, `theirs`, or the JSON text of resolutions.
        strict_rows: Whether rows that both sides changed conflict even in different properties.
        engine: `local`, `spark` or `auto`.
        expect_source: The commit that the source must be at.
        expect_head: The commit that the target must be at.
        approvals: How many reviewers approved the source as it is at that commit.
    """

    resolve: str | None = None
    strict_rows: bool = False
    engine: str | None = None
    expect_source: CommitId | None = None
    approvals: int = 0
    expect_head: CommitId | None = None


RowMergers: TypeAlias = Callable[[EngineName], RowMerger]
"""Returns what merges rows on the engine of a name."""

_UP_TO_DATE: Final = MergeReport(
    Outcome.ALREADY_UP_TO_DATE, Choice(EngineName.LOCAL, "there is nothing to merge")
)


class Merges:
    """Merges the branches of one graph."""

    def __init__(
        self,
        manifest: Manifest,
        clock: Clock,
        transactions: Transactions,
        catalogs: Catalogs,
        mergers: RowMergers,
    ) -> None:
        self._manifest = manifest
        self._clock = clock
        self._transactions = transactions
        self._catalogs = catalogs
        self._mergers = mergers
        self._schemas = SchemaSource(
            catalogs.of,
            lru_cache(maxsize=CATALOGS_MAX)(_compile_rules),
            partial(schemas.load, manifest.store.objects),
        )

    def run(
        self,
        source: BranchName,
        target: BranchName,
        options: Options,
        *,
        actor: str | None = None,
        message: str | None = None,
    ) -> MergeOutcome:
        """Merge one branch, as it is now, into another, in one commit with two parents."""
        theirs = self._mergeable(source, target, options)
        request = WriteRequest(
            OperationKind.MERGE,
            target,
            actor=actor,
            message=f"merge {source} into {target}" if message is None else message,
            source=theirs,
            approvals=options.approvals,
            expect_head=options.expect_head,
        )
        with ExitStack() as cleanup:
            plan = partial(self._plan, theirs, options, cleanup)
            landed = self._transactions.run(request, plan)
        commit_id = None if landed.commit is None else str(landed.commit.commit_id)
        outcome = _outcome(landed.report, theirs, target)
        return replace(outcome, commit_id=commit_id, warnings=landed.warnings)

    def preview(
        self,
        source: BranchName,
        target: BranchName,
        options: Options,
        admit: Admit | None = None,
    ) -> MergeOutcome:
        """What a merge would do, with every conflict; no head moves.

        Args:
            admit: Called before a row is read.

        Where schemas differ, rules are checked on detached versions, to which nothing refers.
        """
        theirs = self._mergeable(source, target, options)
        view = view_of(self._manifest, self._catalogs, target)
        view = view if admit is None else replace(view, admit=admit)
        ours, expected = view.snapshot.head, options.expect_head
        if expected not in (None, ours.commit_id, ours.rows_from):
            message = f"branch {target} is at {ours.commit_id}, expected {expected}"
            hint = "look at what was written to it since"
            raise StaleHeadError(message, hint=hint, expected=expected, actual=ours.commit_id)
        with (
            ExitStack() as cleanup,
            detect_removal(self._manifest.store, theirs, view.snapshot),
        ):
            merge = self._merge(theirs, view, options, cleanup)
            if merge is None:
                return _outcome(_UP_TO_DATE, theirs, target)
            report, _ = merge.decide(view)
        if not report.conflicts:
            merge.resolutions.require_used()
        return _outcome(report, theirs, target)

    def _plan(
        self,
        theirs: Snapshot,
        options: Options,
        cleanup: ExitStack,
        view: View,
    ) -> WritePlan[MergeReport]:
        # What was kept for an earlier plan is of no use for this one.
        cleanup.close()
        with detect_removal(self._manifest.store, theirs):
            merge = self._merge(theirs, view, options, cleanup)
            return WritePlan(_UP_TO_DATE) if merge is None else merge.plan(view)

    def _merge(
        self,
        theirs: Snapshot,
        view: View,
        options: Options,
        cleanup: ExitStack,
    ) -> Merge | None:
        """The merge to be planned on this view; None if the target has all of the source."""
        ours = view.snapshot
        ancestry = self._manifest.ancestry(ours, theirs)
        divergence = self._divergence(ancestry, ours, theirs)
        # Maintenance of the source is nothing that the target lacks.
        if [commit.rows_from for commit in divergence.bases] == [theirs.head.rows_from]:
            return None
        base, points = self._base(divergence, ancestry)
        source = self._side(theirs)
        if view.is_limited:
            changes = changed_types(self._catalogs.of, points[base.anchor], source)
            # Whether a decision fits says something about the row that it names.
            view.admit(changes=changes, reads=read_resolutions(options.resolve).types)
        choice = self._choose(source, base, points, view, options.engine)
        return Merge(
            source,
            base,
            points,
            divergence.theirs,
            self._mergers(choice.engine),
            choice,
            cleanup,
            self._schemas,
            self._clock,
            read_resolutions(options.resolve),
            options.strict_rows,
        )

    def _divergence(self, ancestry: Ancestry, ours: Snapshot, theirs: Snapshot) -> Divergence:
        try:
            divergence = ancestry.divergence([ours.head.commit_id], theirs.head.commit_id)
        except CommitNotFoundError as cause:
            raise _unreadable_base(cause) from cause
        if not divergence.bases:
            message = f"branches {theirs.branch} and {ours.branch} share no history"
            raise InvalidInputError(message)
        return divergence

    def _base(
        self, divergence: Divergence, ancestry: Ancestry
    ) -> tuple[Base, Mapping[CommitId, Side]]:
        """What both sides come from, with each of its commits opened."""
        try:
            base = find_base(divergence.bases, ancestry)
            points = {commit: self._manifest.at(ancestry.find(commit)) for commit in base.commits}
        except CommitNotFoundError as cause:
            raise _unreadable_base(cause) from cause
        except CommitLetGoError as cause:
            raise _let_go_base(cause) from cause
        return base, {commit: self._side(snapshot) for commit, snapshot in points.items()}

    def _side(self, snapshot: Snapshot) -> Side:
        return Side(snapshot, data_at(self._manifest.store, snapshot))

    def _mergeable(self, source: BranchName, target: BranchName, options: Options) -> Snapshot:
        """The source as it is now, if it can be merged into the target as it is wished."""
        # Read here for their faults: a merge that finds nothing to do needs none of them.
        read_resolutions(options.resolve)
        asked_engine(options.engine)
        if source == target:
            message = f"branch {source} cannot be merged into itself"
            hint = "say which branch is to change: --into BRANCH, or into='branch' in Python"
            raise InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_PARAMETER)
        theirs = self._manifest.current(source)
        if options.expect_source not in (None, theirs.head.commit_id):
            expected, actual = options.expect_source, theirs.head.commit_id
            message = f"branch {source} is at {actual}, expected {expected}"
            hint = "look at what was written to it since, and merge that"
            raise StaleHeadError(message, hint=hint, expected=expected, actual=actual)
        return theirs

    def base_of(self, theirs: Snapshot, ours: Snapshot) -> Commit:
        """The newest commit that both have; the first of several."""
        return self._diverge(theirs, ours).bases[0]

    def changed_types(self, theirs: Snapshot, ours: Snapshot) -> frozenset[str]:
        """The types whose rows a merge of theirs would bring in. Reads no rows."""
        base = self._side(self._manifest.at(self.base_of(theirs, ours)))
        return changed_types(self._catalogs.of, base, self._side(theirs))

    def commits_of(self, theirs: Snapshot, ours: Snapshot) -> tuple[Commit, ...]:
        """The commits that only their history has, those of branches that they merged included."""
        return self._diverge(theirs, ours).theirs

    def _diverge(self, theirs: Snapshot, ours: Snapshot) -> Divergence:
        return self._divergence(self._manifest.ancestry(ours, theirs), ours, theirs)

    def _choose(
        self,
        source: Side,
        base: Base,
        points: Mapping[CommitId, Side],
        view: View,
        wanted: str | None,
    ) -> Choice:
        """The engine for as much as both sides changed in tables that the source changed."""
        anchor, target = points[base.anchor], Side(view.snapshot, view.data)
        moved = Filter(origins=frozenset(_moved_origins(anchor.snapshot, source.snapshot)))
        compared = [(anchor, source), (anchor, target)]
        compared += [(points[old], points[new]) for old, new in base.pairs()]
        sizes = (
            comparison.size
            for old, new in compared
            for comparison in moved_types(self._catalogs.of, old, new, moved)
        )
        return by_size(wanted, measure_differences(sizes))


def _compile_rules(catalog: Catalog) -> RuleSet:
    # A merge takes each vector whole: from a side, which kept the rules, or from a decision, which
    # was checked. Its numbers need not be read again.
    return RuleSet.compile(catalog).without(Rule.TYPE)


def _moved_origins(before: Snapshot, after: Snapshot) -> Iterator[tuple[TableKind, str]]:
    """The identities of the types whose tables are not the same at two points."""
    for old, new in pair_pins(before, after):
        pin = new or old
        assert pin is not None, "a pair has a pin"
        if old is None or new is None or old.place != new.place:
            yield pin.key.kind, pin.identity.origin


def _unreadable_base(cause: CommitNotFoundError) -> StorageError:
    message = f"what both branches come from cannot be read: {cause.message}"
    hint = (
        "restore the graph's files from a backup; or look at the differences with "
        "'omnigraph diff', and write to the target what it lacks"
    )
    return StorageError(message, hint=hint, code=ErrorCode.MERGE_BASE_UNREADABLE)


def _let_go_base(cause: CommitLetGoError) -> CommitLetGoError:
    message = f"what both branches come from cannot be read: {cause.message}"
    hint = (
        "look at the differences with 'omnigraph diff', and write to the target what it lacks; "
        "cleanup keeps what merges of existing branches need, and the branch was made since"
    )
    details: dict[str, Any] = cause.details
    return CommitLetGoError(message, hint=hint, **details)


def _outcome(report: MergeReport, theirs: Snapshot, target: BranchName) -> MergeOutcome:
    return MergeOutcome(
        report.outcome,
        theirs.branch,
        target,
        theirs.head.commit_id,
        changes=report.counts,
        conflicts=report.conflicts,
        conflict_count=report.conflict_count,
        engine=report.choice.engine,
        why=report.choice.why,
        steps=report.steps,
    )
