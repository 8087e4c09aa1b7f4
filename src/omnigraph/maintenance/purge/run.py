"""A purge: rewrite what still has the dropped values, then expire and remove the rest.

Nothing is removed before every commit that holds the values can expire. A process may die after
any line: a rewrite changes no row, and a cleanup is finished by the next one (docs/decisions/0016).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Final

from omnigraph.choices import EngineName
from omnigraph.clock import Clock
from omnigraph.errors import CommitLetGoError, CommitNotFoundError
from omnigraph.maintenance.cleanup.ages import NAMELESS_AGE_MIN, Ages
from omnigraph.maintenance.cleanup.plan import make_plan
from omnigraph.maintenance.cleanup.results import CleanupResult, LetGoCommit
from omnigraph.maintenance.cleanup.run import clean
from omnigraph.maintenance.cleanup.survey import GraphSurvey, read_contents, survey_graph
from omnigraph.maintenance.groups import group_stale
from omnigraph.maintenance.optimize import Compaction, Optimizing, Policy
from omnigraph.maintenance.purge.dropped import Drop, DropSet, HeldValues, find_dropped
from omnigraph.maintenance.purge.needs import Situation, require_unneeded
from omnigraph.maintenance.purge.results import (
    HeldFiles,
    Need,
    PurgeResult,
    PurgeRewrite,
    StagedFiles,
)
from omnigraph.maintenance.retention import PurgeRule, RetentionRules
from omnigraph.manifest.reader import Manifest
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.model.tables import TablePin
from omnigraph.recovery.sidecars import Sidecars
from omnigraph.schema.plan import SchemaPlan
from omnigraph.storage.compaction import measure_fragments
from omnigraph.storage.inventory import FileKind, TableFile, take_inventory
from omnigraph.storage.tables import Tables
from omnigraph.transaction.commit import Transactions
from omnigraph.transaction.writes import WriteRequest

_REWRITE: Final = Policy(group_stale, indexes_all=False)


@dataclass(frozen=True, slots=True)
class PurgeOrder:
    """What a caller wants of a purge.

    Attributes:
        branch: The branch that has dropped what is purged.
        rules: The commits that are kept in any case.
        engine: `local`, `spark` or `auto`.
    """

    branch: BranchName
    rules: RetentionRules
    engine: str | None = None
    actor: str | None = None


class Purges:
    """The purges of one graph."""

    def __init__(
        self,
        manifest: Manifest,
        clock: Clock,
        transactions: Transactions,
        begin: Callable[[EngineName], Compaction],
    ) -> None:
        self._manifest = manifest
        self._clock = clock
        self._transactions = transactions
        self._sidecars = transactions.recovery.sidecars
        self._begin = begin

    def preview(self, order: PurgeOrder, plan: SchemaPlan | None = None) -> PurgeResult:
        """What a purge would do now, or after a schema change. Nothing is written."""
        look = self._look(order, plan)
        require_unneeded(str(look.dropped), look.needs)
        cleanup = None
        if look.unnamed.every and not (look.needs or look.rewrites or plan):
            cleanup = self._clean(look, dry_run=True)
        return look.result(cleanup=cleanup)

    def run(self, order: PurgeOrder) -> PurgeResult:
        """Purge what a branch has dropped: everything, or nothing yet."""
        look = self._look(order)
        require_unneeded(str(look.dropped), look.needs)
        if not look.unnamed.every:
            return PurgeResult()
        rewrites = tuple(self._rewrite(order, look))
        if rewrites:
            look = self._look(order)
            require_unneeded(str(look.dropped), look.needs)
        if look.needs or look.rewrites:
            return replace(look.result(), rewrites=rewrites)
        cleanup = self._clean(look, dry_run=False)
        after = self._look(order, also=look)
        return replace(
            after.result(cleanup=cleanup),
            dropped=tuple(sorted(map(str, look.dropped.every))) if look.holders else (),
            rewrites=rewrites,
            commits=cleanup.commits,
        )

    def _look(
        self, order: PurgeOrder, plan: SchemaPlan | None = None, also: _Look | None = None
    ) -> _Look:
        """Look at who holds what is purged, and at who needs it.

        Args:
            also: An earlier look: what it found to be held is looked for on the disk.
        """
        now = self._clock.now()
        nameless = max(NAMELESS_AGE_MIN, order.rules.grace)
        survey = survey_graph(self._manifest, self._sidecars, since=now - nameless)
        for failure in survey.failures:
            # What cannot be read may hold it.
            raise failure
        opened = survey.tips.get(order.branch) or self._manifest.open(order.branch)
        dropped = find_dropped(self._manifest.snapshot(opened, order.branch), plan)
        look = _Look(
            self._manifest, self._sidecars, order, plan, survey, dropped, Ages(now, nameless)
        )
        return look if also is None else replace(look, known=also.held_names)

    def _rewrite(self, order: PurgeOrder, look: _Look) -> Iterator[PurgeRewrite]:
        """Write rows to files without what is purged, one commit for each branch."""
        by_branch: dict[str, list[PurgeRewrite]] = {}
        for rewrite in look.rewrites:
            by_branch.setdefault(rewrite.branch, []).append(rewrite)
        for branch, rewrites in by_branch.items():
            optimizing = Optimizing(
                order.engine,
                self._begin,
                _REWRITE,
                tuple(rewrite.type_name for rewrite in rewrites),
                takes_shared=True,
            )
            landed = self._transactions.run(
                WriteRequest(
                    OperationKind.OPTIMIZE,
                    BranchName(branch),
                    actor=order.actor,
                    message=f"purge of {look.dropped}",
                ),
                optimizing.plan,
            )
            commit_id = None if landed.commit is None else str(landed.commit.commit_id)
            yield from (replace(rewrite, commit_id=commit_id) for rewrite in rewrites)

    def _clean(self, look: _Look, *, dry_run: bool) -> CleanupResult:
        return clean(self._manifest, self._sidecars, self._clock, look.rules, dry_run=dry_run)


@dataclass(frozen=True)
class _Look:
    """One look at a graph: which commits and files hold what is purged, and who needs them.

    Attributes:
        plan: A schema change that is looked at as if it had been made.
        unnamed: What was dropped, by the names that are known without its history.
        known: Names of further files that held it.
    """

    manifest: Manifest
    sidecars: Sidecars
    order: PurgeOrder
    plan: SchemaPlan | None
    survey: GraphSurvey
    unnamed: DropSet
    ages: Ages
    known: frozenset[str] = frozenset()

    @cached_property
    def _pins(self) -> dict[CommitId, tuple[TablePin, ...]]:
        """By commit that can be read, the pins of tables that may hold what is purged."""
        return {
            commit_id: tuple(pin for pin in pins if pin.location in self.unnamed.locations)
            for commit_id, pins in _read_pins(self.manifest, self.survey)
        }

    @cached_property
    def _held(self) -> HeldValues:
        tables = self.manifest.store.tables
        pins = {pin.place: pin for pins in self._pins.values() for pin in pins}
        return HeldValues.read(self.unnamed, tables, pins.values())

    @cached_property
    def _files(self) -> dict[tuple[str, str | None, int], frozenset[str]]:
        """By version of a table, the files that hold what is purged."""
        pins = {pin.place: pin for pins in self._pins.values() for pin in pins}
        return {place: self._held.files_of(pin) for place, pin in pins.items()}

    @cached_property
    def holders(self) -> frozenset[CommitId]:
        """The commits that read files which hold what is purged."""
        return frozenset(
            commit_id
            for commit_id, pins in self._pins.items()
            if any(self._files[pin.place] for pin in pins)
        )

    @cached_property
    def dropped(self) -> DropSet:
        """What is purged, by the names that it had in the newest commit that has it."""
        tables = self.manifest.store.tables
        names: dict[Drop, tuple[str, str | None]] = {}
        for commit_id in sorted(self.holders, key=self._created_at):
            for pin in self._pins[commit_id]:
                has_files = self._files[pin.place]
                for column in tables.open_pin(pin).schema.names if has_files else ():
                    dropped = self.unnamed.find(pin, column)
                    if dropped is not None:
                        name = None if dropped.origin is None else column
                        names[dropped] = (pin.key.type_name, name)
        named = {dropped.location for dropped in names}
        # Of what other files hold, it is not recorded whose it was.
        held = (
            each
            for each in self.unnamed.every
            if each in names or each.location in self._holding - named
        )
        return DropSet(tuple(held)).renamed(names)

    @property
    def _holding(self) -> frozenset[str]:
        """The tables that have files which hold it."""
        return frozenset(location for (location, _, _), files in self._files.items() if files)

    def _created_at(self, commit_id: CommitId) -> datetime:
        return self.survey.commits[commit_id].created_at

    @cached_property
    def rewrites(self) -> tuple[PurgeRewrite, ...]:
        """The tables of branches that dropped it, and whose files still hold it."""
        return tuple(self._find_rewrites(self.manifest.store.tables))

    def _find_rewrites(self, tables: Tables) -> Iterator[PurgeRewrite]:
        gone = (
            set()
            if self.plan is None
            else {type_.table_key for type_ in self.plan.matching.dropped_types(self.plan.old)}
        )
        for branch, opened in self.survey.tips.items():
            is_changed = branch == self.order.branch and self.plan is not None
            for pin in opened.contents.pins:
                if pin.location not in self.unnamed.locations or (is_changed and pin.key in gone):
                    continue
                if not self._held.files_of(pin):
                    continue
                table = tables.open_pin(pin)
                if is_changed or not self._held.has_columns(pin, table):
                    sizes = measure_fragments(table)
                    stale = [size for size in sizes if is_changed or size.is_stale]
                    yield PurgeRewrite(
                        branch,
                        pin.key.type_name,
                        sum(size.row_count for size in stale),
                        sum(size.byte_count for size in stale),
                    )

    @cached_property
    def leaving(self) -> frozenset[CommitId]:
        """The commits to expire: those that hold it, and with a deleted branch its other ones."""
        commits = self.survey.commits.values()
        ends = self.survey.needs.ended.keys() & self.holders
        # The newest commit of a deleted branch is kept as long as any other one.
        deleted = {commit.ref for commit in commits if commit.commit_id in ends} - {None}
        return self.holders | {each.commit_id for each in commits if each.ref in deleted}

    @cached_property
    def rules(self) -> RetentionRules:
        """The rules of the cleanup: it expires no other commits."""
        return replace(self.order.rules, purge=PurgeRule(self.leaving, str(self.dropped)))

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        """Who needs the commits that hold it, once rewrites and the change have been made."""
        survey = self.survey
        commits, tips = dict(survey.commits), dict(survey.heads)
        moved = {rewrite.branch for rewrite in self.rewrites}
        if self.plan is not None and not self.plan.is_empty:
            moved.add(self.order.branch)
        for branch in map(BranchName, moved):
            tip = commits[tips[branch]]
            future = replace(
                tip,
                commit_id=CommitId(f"{tip.commit_id} after it"),
                parent=tip.commit_id,
                merged_parent=None,
                branch=branch,
                created_at=self.ages.now,
                generation=None if tip.generation is None else tip.generation + 1,
            )
            commits[future.commit_id] = future
            tips[branch] = future.commit_id
        tags = {tag.name: tag.commit_id for tag in survey.tags}
        needs = replace(survey.needs, tips=tips)
        situation = Situation(commits, needs, tags, self.rules, self.ages.now)
        return situation.find_needs(self.holders)

    @cached_property
    def held_names(self) -> frozenset[str]:
        """The names of all files that hold what is purged."""
        return self.known.union(*self._files.values())

    def result(self, *, cleanup: CleanupResult | None = None) -> PurgeResult:
        """What this look says about a purge."""
        if not self.unnamed.every:
            return PurgeResult()
        held = tuple(self._find_held())
        commits = [self.survey.commits[commit_id] for commit_id in self.leaving]
        newest_first = sorted(commits, key=lambda commit: commit.created_at, reverse=True)
        return PurgeResult(
            dropped=tuple(sorted(map(str, self.dropped.every))) if held else (),
            rewrites=self.rewrites,
            commits=tuple(map(LetGoCommit.of, newest_first)),
            held=held,
            waits=self.needs,
            cleanup=cleanup,
            staged=self._find_staged(),
        )

    def _find_held(self) -> Iterator[HeldFiles]:
        """The files on the disk that hold what is purged, by table."""
        things = (*self.unnamed.every, *self.dropped.every)
        names = {each.location: each.type_name for each in things}
        for location, type_name in sorted(names.items(), key=lambda item: item[1]):
            inventory = take_inventory(self.manifest.store.objects, location)
            files = [file for file in inventory.files if _short_name(file) in self.held_names]
            if files:
                yield HeldFiles(type_name, len(files), sum(file.size for file in files))

    def _find_staged(self) -> StagedFiles | None:
        """The files of unfinished writes to these tables, which a cleanup still leaves."""
        plan = make_plan(self.manifest, self.sidecars, self.ages, RetentionRules())
        files = [
            file
            for table in plan.tables
            if table.location in self.unnamed.locations
            for file in table.staged
            if file.kind in (FileKind.DATA, FileKind.INDEX)
        ]
        if not files:
            return None
        until = max(file.written_at for file in files) + self.ages.staged
        return StagedFiles(len(files), sum(file.size for file in files), until)


def _short_name(file: TableFile) -> str:
    """The name of a file as `storage.dropped_columns` has it."""
    return file.name.rpartition("/")[2]


def _read_pins(
    manifest: Manifest, survey: GraphSurvey
) -> Iterator[tuple[CommitId, tuple[TablePin, ...]]]:
    """The pins of every commit that can be read."""
    commits = [commit for commit in survey.commits.values() if not survey.is_let_go(commit)]
    placed = {
        (commit.ref, commit.manifest_version): commit.commit_id
        for commit in commits
        if commit.has_known_ref
    }
    for place, contents in read_contents(manifest, placed).items():
        yield placed[place], contents.pins
    for commit in commits:
        if not commit.has_known_ref:
            # An earlier release made it; the files of its branch may be gone.
            with suppress(CommitNotFoundError, CommitLetGoError):
                yield commit.commit_id, tuple(manifest.at(commit).pins.values())
