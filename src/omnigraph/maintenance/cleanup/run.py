"""Cleanup: plan, mark, look once more, confirm, remove.

A process may die after any line. What was confirmed expires, whether or not it was removed; what
was not removed is found by the next cleanup, because nothing names it (docs/decisions/0014).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final, TypeAlias

from omnigraph.clock import Clock
from omnigraph.errors import OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.maintenance.cleanup.ages import NAMELESS_AGE_MIN, Ages
from omnigraph.maintenance.cleanup.plan import CleanupPlan, Marks, TablePlan, make_plan
from omnigraph.maintenance.cleanup.refs import RefCleanup, finish_deletions, remove_refs
from omnigraph.maintenance.cleanup.results import CleanupResult, LetGoCommit, TableCleanup, Trouble
from omnigraph.maintenance.cleanup.survey import survey_graph
from omnigraph.maintenance.retention import RetentionRules, find_kept
from omnigraph.manifest.layout import MANIFEST
from omnigraph.manifest.reader import Manifest
from omnigraph.model.commits import Commit
from omnigraph.model.ids import OperationId
from omnigraph.model.let_go import LetGo
from omnigraph.recovery.sidecars import Sidecars
from omnigraph.storage.inventory import TableFile
from omnigraph.storage.objects import Entry
from omnigraph.storage.tables import ref_folder

CLEANUP_CHUNK_FILES: Final = 1000
"""Files that a cleanup deletes before it looks at its failpoints."""


def clean(
    manifest: Manifest,
    sidecars: Sidecars,
    clock: Clock,
    rules: RetentionRules,
    *,
    dry_run: bool = False,
    age_min: timedelta | None = None,
) -> CleanupResult:
    """Let commits go by the rules, and remove what neither a kept commit nor a write needs.

    No result of a query changes at any commit that is kept. Each table is processed separately: a
    failure with one of them is reported, and does not affect the others.

    Args:
        age_min: Replaces the ages in `maintenance.cleanup.ages`, for callers that know that no
            other process is writing.
    """
    now = clock.now()
    ages = Ages.at(now, age_min)
    if age_min is None:
        ages = replace(ages, nameless=max(NAMELESS_AGE_MIN, rules.grace))
    if not dry_run:
        finish_deletions(manifest, now)
    plan = make_plan(manifest, sidecars, ages, rules)
    if dry_run:
        return _result(plan, rules, plan.tables, RefCleanup(plan.refs.orphans), plan.troubles)
    hit(Failpoint.CLEANUP_AFTER_PLAN)
    run = OperationId(clock.ulid())
    if plan.marks:
        plan = _let_go(manifest, sidecars, ages, rules, plan, run)
    return _Removal(manifest, sidecars, ages, rules, plan).run()


def _let_go(
    manifest: Manifest,
    sidecars: Sidecars,
    ages: Ages,
    rules: RetentionRules,
    plan: CleanupPlan,
    run: OperationId,
) -> CleanupPlan:
    """Record the commits to expire, but for those that became needed meanwhile.

    Returns:
        The plan without what only those need.
    """
    manifest.let_go.mark(run, plan.marks, LetGo(ages.now, str(rules)))
    hit(Failpoint.CLEANUP_AFTER_MARK)
    again = survey_graph(manifest, sidecars, since=ages.now - ages.nameless)
    kept = find_kept(again.commits, again.needs, rules, ages.now)
    needed = [commit for commit in plan.commits if commit.commit_id in kept]
    if again.failures:
        needed = list(plan.commits)
    hit(Failpoint.CLEANUP_AFTER_LOOK)
    confirmed = manifest.let_go.confirm(run, _spare(plan.marks, needed))
    hit(Failpoint.CLEANUP_AFTER_CONFIRM)
    if confirmed == plan.marks:
        return plan
    # Others need some of them, and what those read must stay. Without rules, everything is kept
    # that did not expire.
    fresh = make_plan(manifest, sidecars, ages, RetentionRules(grace=rules.grace))
    gone = tuple(
        commit
        for commit in plan.commits
        if commit.manifest_version in confirmed.get(commit.ref, ())
    )
    return replace(plan.limited_to(fresh), commits=gone, marks=confirmed)


def _spare(marks: Marks, needed: Iterable[Commit]) -> dict[str | None, frozenset[int]]:
    """The marks to take back.

    A version that shows a needed commit and made none, such as the first one of a branch, is not
    told from others: it expires, and the commit itself stays.
    """
    spared: dict[str | None, frozenset[int]] = dict.fromkeys(marks, frozenset())
    for commit in needed:
        spared[commit.ref] = spared.get(commit.ref, frozenset()) | {commit.manifest_version}
    return spared


Folders: TypeAlias = "Mapping[str, tuple[Entry, ...]]"
"""The files of folders that go whole, by folder."""


class _Removal:
    """Removes what a plan says. Whatever fails is reported, and found by the next cleanup."""

    def __init__(
        self,
        manifest: Manifest,
        sidecars: Sidecars,
        ages: Ages,
        rules: RetentionRules,
        plan: CleanupPlan,
    ) -> None:
        self._manifest = manifest
        self._sidecars = sidecars
        self._objects = manifest.store.objects
        self._ages = ages
        self._rules = rules
        self._plan = plan
        self._troubles: list[Trouble] = list(plan.troubles)

    def run(self) -> CleanupResult:
        """Remove the manifest's versions before what they name, and a table's before its files.

        So a reader finds a commit whole, or not at all.
        """
        plan = self._plan
        own = [table for table in plan.tables if table.location == MANIFEST]
        others = [table for table in plan.tables if table.location != MANIFEST]
        emptied = [table for table in own if self._remove_versions(table)]
        refs = self._remove_refs()
        blocked = {trouble.location for trouble in refs.troubles if trouble.ref is not None}
        if len(emptied) < len(own) or MANIFEST in blocked:
            # Commits that expired can still be found: what they read stays until they cannot.
            plan, others = replace(plan, unused={}, schemas=()), []
        emptied += [table for table in others if self._remove_versions(table)]
        free = [table for table in emptied if table.location not in blocked]
        done = [table for table in free if self._remove_files(table)]
        unused = self._clear_tables(plan.unused)
        schemas = self._remove_schemas(plan.schemas)
        scratch = self._clear_scratch(plan.scratch)
        self._manifest.let_go.forget_marks(self._ages.now - self._ages.staged)
        removed = replace(plan, unused=unused, schemas=schemas, scratch=scratch)
        troubles = (*self._troubles, *refs.troubles)
        return _result(removed, self._rules, done, refs, tuple(dict.fromkeys(troubles)))

    def _remove_versions(self, table: TablePlan) -> bool:
        tables = self._manifest.store.tables
        by_ref: dict[str | None, list[TableFile]] = {}
        for file in table.versions:
            by_ref.setdefault(file.ref, []).append(file)
        try:
            for ref, files in by_ref.items():
                numbers = [file.version for file in files if file.version is not None]
                tables.gaps.announce(ref_folder(table.location, ref), max(numbers))
                for _ in self._delete(files):
                    hit(Failpoint.CLEANUP_AFTER_VERSIONS)
                tables.forget(table.location, ref=ref, versions=numbers)
        except OmnigraphError as failure:
            self._troubles.append(Trouble(table.location, None, failure.message))
            return False
        return True

    def _remove_refs(self) -> RefCleanup:
        plan = self._plan
        try:
            survey = survey_graph(
                self._manifest, self._sidecars, since=self._ages.now - self._ages.nameless
            )
            return remove_refs(
                self._manifest,
                self._sidecars,
                self._ages,
                replace(plan.refs, troubles=()),
                kept=plan.kept_refs,
                is_let_go=survey.is_let_go,
            )
        except OmnigraphError as failure:
            failed = [Trouble(ref.location, ref.ref, failure.message) for ref in plan.refs.orphans]
            return RefCleanup((), tuple(failed))

    def _remove_files(self, table: TablePlan) -> bool:
        try:
            for _ in self._delete(table.files):
                hit(Failpoint.CLEANUP_AFTER_FILES)
            self._objects.remove_empty_folders(
                file.path for file in table.files if file.path.count("/") > file.name.count("/")
            )
        except OmnigraphError as failure:
            self._troubles.append(Trouble(table.location, None, failure.message))
            return False
        return True

    def _delete(self, files: Iterable[TableFile]) -> Iterator[None]:
        """Delete files, and yield after some of them."""
        paths = [file.path for file in files]
        for first in range(0, len(paths), CLEANUP_CHUNK_FILES):
            self._objects.delete_all(paths[first : first + CLEANUP_CHUNK_FILES])
            yield

    def _clear_tables(self, tables: Folders) -> Folders:
        cleared: dict[str, tuple[Entry, ...]] = {}
        for folder in self._clear(tables):
            cleared[folder] = tables[folder]
            hit(Failpoint.CLEANUP_AFTER_EACH_TABLE)
        return cleared

    def _clear_scratch(self, scratch: Folders) -> Folders:
        cleared: dict[str, tuple[Entry, ...]] = {}
        for folder in self._clear(scratch):
            cleared[folder] = scratch[folder]
            hit(Failpoint.CLEANUP_AFTER_EACH_SCRATCH)
        return cleared

    def _clear(self, folders: Iterable[str]) -> Iterator[str]:
        """Clear folders, and yield each of them."""
        for folder in folders:
            try:
                self._objects.clear(folder)
            except OmnigraphError as failure:
                self._troubles.append(Trouble(folder, None, failure.message))
            else:
                yield folder

    def _remove_schemas(self, schemas: Iterable[Entry]) -> tuple[Entry, ...]:
        removed: list[Entry] = []
        for entry in schemas:
            try:
                # A writer that wants it again has stored it once more.
                written_at = self._objects.written_at(entry.path)
                if written_at is None or not self._ages.is_staged_long_ago(written_at):
                    continue
                self._objects.delete(entry.path)
            except OmnigraphError as failure:
                self._troubles.append(Trouble(entry.path, None, failure.message))
            else:
                removed.append(entry)
            hit(Failpoint.CLEANUP_AFTER_EACH_SCHEMA)
        return tuple(removed)


def _result(
    plan: CleanupPlan,
    rules: RetentionRules,
    tables: Iterable[TablePlan],
    refs: RefCleanup,
    troubles: tuple[Trouble, ...],
) -> CleanupResult:
    versions = tuple(_table_cleanup(table) for table in tables if table.versions or table.files)
    whole = [*plan.unused.values(), *plan.scratch.values(), plan.schemas]
    sizes = [entry.size for entries in whole for entry in entries]
    sizes += [plan.ref_sizes.get(orphan, 0) for orphan in refs.reclaimed]
    newest_first = sorted(plan.commits, key=lambda commit: commit.created_at, reverse=True)
    return CleanupResult(
        rules=str(rules),
        commits=tuple(map(LetGoCommit.of, newest_first)),
        kept=plan.kept,
        versions=versions,
        tables=tuple(plan.unused),
        refs=refs.reclaimed,
        schemas=tuple(entry.path for entry in plan.schemas),
        scratch=tuple(plan.scratch),
        size=sum(sizes) + sum(table.size for table in versions),
        troubles=troubles,
    )


def _table_cleanup(table: TablePlan) -> TableCleanup:
    size = sum(file.size for file in (*table.versions, *table.files))
    return TableCleanup(table.location, table.name, len(table.versions), len(table.files), size)
