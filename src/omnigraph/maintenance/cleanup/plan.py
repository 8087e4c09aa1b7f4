"""The plan of a cleanup: which commits expire, and what nothing names afterwards.

The order of reading makes it safe beside writers: files are listed first, then sidecars are read,
then branches. A file that was listed, and that neither an unfinished write nor a kept commit names,
can be named later only if it is too old for that (`maintenance.cleanup.ages`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeAlias

from omnigraph.choices import TableKind
from omnigraph.errors import CommitLetGoError, CommitNotFoundError, OmnigraphError
from omnigraph.limits import CLEANUP_THREADS
from omnigraph.maintenance.cleanup.ages import Ages
from omnigraph.maintenance.cleanup.refs import RefPlan, plan_refs
from omnigraph.maintenance.cleanup.results import OrphanedRef, Trouble
from omnigraph.maintenance.cleanup.survey import GraphSurvey, Place, read_contents, survey_graph
from omnigraph.maintenance.cleanup.unused_tables import find_unused_tables
from omnigraph.maintenance.retention import RetentionRules, find_kept
from omnigraph.manifest.drafts import SetSchema
from omnigraph.manifest.layout import MANIFEST, RECOVERIES, RETENTION, SCHEMAS
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.rows import Contents
from omnigraph.manifest.schemas import is_schema_path, schema_path
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN
from omnigraph.recovery.scratch import SCRATCH, find_scratch, is_held
from omnigraph.recovery.sidecars import Sidecars
from omnigraph.storage.inventory import (
    FileKind,
    Inventory,
    NamedFiles,
    TableFile,
    collect_arrays,
    collect_named_files,
    take_inventory,
)
from omnigraph.storage.objects import Entry
from omnigraph.storage.tables import is_minted

Marks: TypeAlias = "Mapping[str | None, frozenset[int]]"
"""By ref of the manifest, versions to expire."""

NamedVersions: TypeAlias = "Mapping[tuple[str, str | None], set[int]]"
"""By location and ref of a table, versions that are needed."""


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What is to be removed of one table that stays.

    Attributes:
        name: Its type; empty for the graph's own tables.
        versions: The files of versions, which go first.
        files: The files that no version names then.
        staged: Files that no version names, and that stay: a write may have staged them.
    """

    location: str
    name: str
    versions: tuple[TableFile, ...]
    files: tuple[TableFile, ...]
    staged: tuple[TableFile, ...] = ()

    def limited_to(self, other: TablePlan | None) -> TablePlan:
        """What is in both plans."""
        if other is None:
            return replace(self, versions=(), files=())
        paths = {file.path for file in (*other.versions, *other.files)}
        return replace(
            self,
            versions=tuple(file for file in self.versions if file.path in paths),
            files=tuple(file for file in self.files if file.path in paths),
        )


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """What a cleanup removes.

    Attributes:
        commits: The commits to expire.
        marks: The versions of the manifest that show those commits.
        kept: How many commits can be read afterwards.
        kept_refs: The refs of tables that kept commits pin.
        tables: What is removed from tables that stay.
        unused: The files of tables that go whole, by location.
        ref_sizes: How many bytes each ref's own files have.
        schemas: The schemas that no kept commit has.
        scratch: The files of scratch folders of ended loads, by folder.
    """

    commits: tuple[Commit, ...]
    marks: Marks
    kept: int
    kept_refs: frozenset[OrphanedRef]
    refs: RefPlan
    ref_sizes: Mapping[OrphanedRef, int]
    tables: tuple[TablePlan, ...]
    unused: Mapping[str, tuple[Entry, ...]]
    schemas: tuple[Entry, ...]
    scratch: Mapping[str, tuple[Entry, ...]]
    troubles: tuple[Trouble, ...]

    def is_let_go(self, survey: GraphSurvey, commit: Commit) -> bool:
        """Whether a commit expired, or does by this plan."""
        marked = self.marks.get(commit.ref, frozenset()) if commit.has_known_ref else ()
        return survey.is_let_go(commit) or commit.manifest_version in marked

    def limited_to(self, other: CleanupPlan) -> CleanupPlan:
        """What is in both plans, apart from commits to expire."""
        tables = {plan.location: plan for plan in other.tables}
        return replace(
            self,
            kept=other.kept,
            kept_refs=other.kept_refs,
            tables=tuple(plan.limited_to(tables.get(plan.location)) for plan in self.tables),
            unused={place: files for place, files in self.unused.items() if place in other.unused},
            schemas=tuple(entry for entry in self.schemas if entry in other.schemas),
            refs=replace(
                self.refs,
                orphans=tuple(ref for ref in self.refs.orphans if ref in other.refs.orphans),
                released=self.refs.released & other.refs.released,
            ),
        )


def make_plan(
    manifest: Manifest, sidecars: Sidecars, ages: Ages, rules: RetentionRules
) -> CleanupPlan:
    """Plan a cleanup. Nothing is written."""
    objects = manifest.store.objects
    inventories, troubles = _take_inventories(manifest)
    stored_schemas = [entry for entry in objects.entries(SCHEMAS) if is_schema_path(entry.path)]
    survey = survey_graph(manifest, sidecars, since=ages.now - ages.nameless)
    return _Planning(manifest, sidecars, ages, rules, inventories, survey, troubles).run(
        stored_schemas
    )


def _take_inventories(manifest: Manifest) -> tuple[dict[str, Inventory], list[Trouble]]:
    objects = manifest.store.objects
    folders = (folder for kind in TableKind for folder in objects.folders(kind.folder))
    inventories: dict[str, Inventory] = {}
    troubles: list[Trouble] = []
    for location in (MANIFEST, RECOVERIES, *sorted(folders)):
        try:
            inventories[location] = take_inventory(objects, location)
        except OmnigraphError as failure:
            troubles.append(Trouble(location, None, failure.message))
    return inventories, troubles


@dataclass(slots=True)
class _Planning:
    """The state of one plan in the making."""

    manifest: Manifest
    sidecars: Sidecars
    ages: Ages
    rules: RetentionRules
    inventories: dict[str, Inventory]
    survey: GraphSurvey
    troubles: list[Trouble]

    def run(self, stored_schemas: Iterable[Entry]) -> CleanupPlan:
        survey = self.survey
        self.troubles += [Trouble(RETENTION, None, each.message) for each in survey.failures]
        kept = self._find_kept()
        gone = [
            commit
            for commit in survey.commits.values()
            if commit.commit_id not in kept and not survey.is_let_go(commit)
        ]
        contents = self._read_kept(kept)
        shown = self._find_other_versions()
        marks = _marks(gone, shown)
        plan = CleanupPlan(
            commits=tuple(gone),
            marks=marks,
            kept=len(kept),
            kept_refs=frozenset(_pinned_refs(contents.values())),
            refs=RefPlan((), frozenset(), ()),
            ref_sizes={},
            tables=(),
            unused={},
            schemas=(),
            scratch=self._find_scratch(),
            troubles=(),
        )
        refs = plan_refs(
            self.manifest,
            self.sidecars,
            self.ages,
            kept=plan.kept_refs,
            is_let_go=lambda commit: plan.is_let_go(survey, commit),
        )
        self.troubles += [each for each in refs.troubles if each not in self.troubles]
        sizes = {
            orphan: self.inventories[orphan.location].ref_size(orphan.ref)
            for orphan in refs.orphans
            if orphan.location in self.inventories
        }
        plan = replace(plan, refs=refs, ref_sizes=sizes)
        if survey.failures:
            # What cannot be read may name anything.
            return replace(plan, troubles=tuple(self.troubles))
        named = self._named_versions(contents)
        manifest_versions = set(contents)
        manifest_versions |= {place for place, head in shown.items() if head in (None, *kept)}
        unused = self._find_unused(named, contents.values())
        tables = self._plan_tables(named, manifest_versions, refs, unused)
        return replace(
            plan,
            tables=tuple(tables),
            unused=unused,
            schemas=tuple(self._find_schemas(stored_schemas, kept)),
            troubles=tuple(self.troubles),
        )

    def _find_kept(self) -> dict[CommitId, Commit]:
        survey = self.survey
        rules = RetentionRules() if survey.failures else self.rules
        reasons = find_kept(survey.commits, survey.needs, rules, self.ages.now)
        commits = ((commit_id, survey.commits[commit_id]) for commit_id in reasons)
        return {id_: commit for id_, commit in commits if not survey.is_let_go(commit)}

    def _read_kept(self, kept: Mapping[CommitId, Commit]) -> dict[Place, Contents]:
        """What the kept commits pin, and the tips of branches."""
        places = {
            (commit.ref, commit.manifest_version)
            for commit in kept.values()
            if commit.has_known_ref
        }
        for commit in kept.values():
            if not commit.has_known_ref:
                # An earlier release made it; the files of its branch may be gone.
                try:
                    snapshot = self.manifest.at(commit)
                except (CommitNotFoundError, CommitLetGoError):
                    continue
                places.add((snapshot.ref, snapshot.manifest_version))
        for ref, opened in self.survey.living.items():
            places.add((ref, opened.table.version))
        return read_contents(self.manifest, places)

    def _find_other_versions(self) -> dict[Place, CommitId | None]:
        """The versions of existing branches that made no commit, with the commit that each shows.

        A branch starts with such a version, an import ends with one, and each batch of a stream
        that has no rows makes one.
        """
        inventory = self.inventories.get(MANIFEST)
        if inventory is None:
            return {}
        made = {
            (commit.ref, commit.manifest_version)
            for commit in self.survey.commits.values()
            if commit.has_known_ref
        }
        others: list[Place] = []
        for ref in self.survey.living:
            record = self.survey.record.by_ref.get(ref)
            others += [
                (ref, version)
                for version in inventory.versions(ref)
                if (ref, version) not in made and (record is None or not record.find(version))
            ]

        def read_head(place: Place) -> CommitId | None:
            return self.manifest.contents_at(*place).head

        with ThreadPoolExecutor(CLEANUP_THREADS) as pool:
            return dict(zip(others, pool.map(read_head, others), strict=True))

    def _owned_refs(self, location: str) -> Iterator[str | None]:
        """The refs of a table whose owner is known: main, an existing or a deleted branch.

        Others are being created, or are left over, and are removed whole or not at all.
        """
        yield None
        owners = {ref for ref in self.survey.living if ref is not None}
        owners |= {branch.ref for branch in self.survey.retired}
        for ref in sorted(self.inventories[location].refs):
            if ref in owners or (location != MANIFEST and ref.partition("/")[0] in owners):
                yield ref

    def _named_versions(self, contents: Mapping[Place, Contents]) -> NamedVersions:
        """The versions of tables that kept commits and unfinished writes name."""
        named: dict[tuple[str, str | None], set[int]] = defaultdict(set)
        for each in contents.values():
            for pin in each.pins:
                named[pin.location, pin.ref].add(pin.version)
        for intent in self.survey.intents:
            for table in intent.tables:
                moved = range(table.expected_version, table.post_commit_pin + 1)
                named[table.location, table.ref].update(moved)
                named[table.location, table.pinned_ref].add(table.expected_version)
            for pin in intent.draft.pins:
                named[pin.location, pin.ref].add(pin.version)
        return named

    def _plan_tables(
        self,
        named: NamedVersions,
        manifest_versions: Collection[Place],
        refs: RefPlan,
        unused: Collection[str],
    ) -> Iterator[TablePlan]:
        names = {
            pin.location: str(pin.key)
            for opened in self.survey.tips.values()
            for pin in opened.contents.pins
        }
        orphans = {(orphan.location, orphan.ref) for orphan in refs.orphans}
        for location, inventory in self.inventories.items():
            if location in unused or not inventory.files:
                continue
            leaving = {ref for ref in inventory.refs if (location, ref) in orphans}
            if location == MANIFEST:
                going = dict(self._manifest_versions(inventory, manifest_versions, leaving))
            elif location == RECOVERIES:
                going = {None: self._old_versions(inventory)}
            else:
                going = dict(self._table_versions(inventory, named, leaving))
            try:
                plan = self._plan_table(inventory, going, leaving)
            except OmnigraphError as failure:
                self.troubles.append(Trouble(location, None, failure.message))
                continue
            if plan.versions or plan.files or plan.staged:
                yield replace(plan, name=names.get(location, ""))

    def _manifest_versions(
        self, inventory: Inventory, named: Collection[Place], leaving: Collection[str]
    ) -> Iterator[tuple[str | None, set[int]]]:
        living = self.survey.living
        for ref in self._owned_refs(MANIFEST):
            versions = inventory.versions(ref)
            newest = max(versions, default=0)
            if ref in living:
                newest = min(newest, living[ref].table.version)
            going = {each for each in versions if each < newest and (ref, each) not in named}
            yield ref, set(versions) if ref in leaving else going

    def _table_versions(
        self,
        inventory: Inventory,
        named: NamedVersions,
        leaving: Collection[str],
    ) -> Iterator[tuple[str | None, set[int]]]:
        location = inventory.location
        for ref in self._owned_refs(location):
            versions = inventory.versions(ref)
            if ref in leaving:
                yield ref, set(versions)
            elif (location, ref) in named or self._is_ended(ref):
                end = self._end(location, ref)
                wanted = named.get((location, ref), ())
                yield ref, {v for v in versions if v not in wanted and (end is None or v < end)}

    def _is_ended(self, ref: str | None) -> bool:
        """Whether a table's ref is of a branch that was deleted so long ago that it is unused.

        Lance cannot open a ref that it has registered, and that has no version left.
        """
        since = self.ages.now - self.ages.nameless
        return (
            ref is not None
            and is_minted(ref)
            and any(
                branch.owns(ref) and branch.retired_at is not None and branch.retired_at <= since
                for branch in self.survey.retired
            )
        )

    def _end(self, location: str, ref: str | None) -> int | None:
        """The version from which on a head belongs to its owner; None if no writer moves the head.

        What lies above a pin is a write in progress, or was written past the graph.
        """
        ends = [
            table.expected_version
            for intent in self.survey.intents
            for table in intent.tables
            if table.location == location and ref in (table.ref, table.pinned_ref)
        ]
        owner = None if ref is None else ref.partition("/")[0]
        opened = self.survey.living.get(owner) or self.survey.living.get(ref)
        pins = () if opened is None else opened.contents.pins
        ends += [pin.version for pin in pins if (pin.location, pin.ref) == (location, ref)]
        return min(ends, default=None)

    def _old_versions(self, inventory: Inventory) -> set[int]:
        """The old versions of the list of recoveries, of which only the newest is read."""
        versions = inventory.versions(None)
        newest = max(versions, default=0)
        return {
            version
            for version, file in versions.items()
            if version < newest and self.ages.is_staged_long_ago(file.written_at)
        }

    def _plan_table(
        self,
        inventory: Inventory,
        going: Mapping[str | None, set[int]],
        leaving: Collection[str],
    ) -> TablePlan:
        named = NamedFiles()
        location = inventory.location
        for ref in (None, *sorted(inventory.refs)):
            # Lance cannot open a ref that has no version left.
            if ref is None or inventory.versions(ref):
                tables = self.manifest.store.tables
                collect_named_files(tables, location, ref, going.get(ref, ()), named)
        collect_arrays(inventory, going, named)
        files = [file for file in inventory.files if file.ref not in leaving]
        unnamed = [file for file in files if _is_unnamed(file, named)]
        return TablePlan(
            location,
            "",
            tuple(file for file in files if file.version in going.get(file.ref, ())),
            tuple(file for file in unnamed if self._is_garbage(file, named)),
            tuple(file for file in unnamed if not self._is_garbage(file, named)),
        )

    def _is_garbage(self, file: TableFile, named: NamedFiles) -> bool:
        is_old = self.ages.is_staged_long_ago(file.written_at)
        return is_old or (file.kind is not FileKind.DETACHED and file.name in named.by_removed)

    def _find_unused(
        self,
        named: NamedVersions,
        contents: Iterable[Contents],
    ) -> dict[str, tuple[Entry, ...]]:
        """The tables that no commit had, and those of dropped types that no kept commit has."""
        objects = self.manifest.store.objects
        pinned = {location for location, _ in named}
        dropped = {dead.location for each in contents for dead in each.tombstones} - pinned
        try:
            unused = find_unused_tables(
                self.manifest,
                [each for each in self.inventories if each not in pinned],
                dropped=dropped,
                ages=self.ages,
            )
            return {location: objects.entries(location) for location in unused}
        except OmnigraphError as failure:
            self.troubles.append(Trouble(MANIFEST, None, failure.message))
            return {}

    def _find_schemas(
        self, stored: Iterable[Entry], kept: Mapping[CommitId, Commit]
    ) -> Iterator[Entry]:
        digests = {commit.schema_digest for commit in kept.values()}
        for intent in self.survey.intents:
            schema = intent.draft.the(SetSchema)
            digests |= {intent.schema_digest or "", "" if schema is None else schema.digest}
        needed = {schema_path(digest) for digest in digests}
        for entry in stored:
            if entry.path not in needed and self.ages.is_staged_long_ago(entry.written_at):
                yield entry

    def _find_scratch(self) -> dict[str, tuple[Entry, ...]]:
        objects = self.manifest.store.objects
        found: dict[str, tuple[Entry, ...]] = {}
        try:
            folders = find_scratch(objects)
        except OmnigraphError as failure:
            self.troubles.append(Trouble(SCRATCH, None, failure.message))
            return {}
        for scratch in folders:
            try:
                is_old = self.ages.is_staged_long_ago(scratch.written_at)
                if is_old and not is_held(objects, scratch.load_id):
                    found[scratch.folder] = objects.entries(scratch.folder)
            except OmnigraphError as failure:
                self.troubles.append(Trouble(scratch.folder, None, failure.message))
        return found


def _is_unnamed(file: TableFile, named: NamedFiles) -> bool:
    """Whether no version that stays names a file. No version names previews."""
    if file.kind is FileKind.VERSION:
        return False
    return file.kind is FileKind.DETACHED or file.name not in named.by_kept


def _pinned_refs(contents: Iterable[Contents]) -> Iterator[OrphanedRef]:
    for each in contents:
        for pin in each.pins:
            yield OrphanedRef(pin.location, pin.ref or MAIN)


def _marks(
    gone: Collection[Commit], shown: Mapping[Place, CommitId | None]
) -> dict[str | None, frozenset[int]]:
    """By ref, the versions that show commits to expire."""
    ids = {commit.commit_id for commit in gone}
    versions: dict[str | None, set[int]] = defaultdict(set)
    for commit in gone:
        versions[commit.ref].add(commit.manifest_version)
    for (ref, version), head in shown.items():
        if head in ids:
            versions[ref].add(version)
    return {ref: frozenset(some) for ref, some in versions.items()}
