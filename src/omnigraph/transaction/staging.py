"""Staging: the files and the new tables of a plan, to which nothing refers yet."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omnigraph.clock import Clock
from omnigraph.engine.protocol import Data
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import schemas
from omnigraph.manifest.lifecycle import create_table
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import OperationId
from omnigraph.model.tables import TableKey, TablePin
from omnigraph.storage import heads
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import CreatedTable, Report, StagedTables, WritePlan


@dataclass(frozen=True, slots=True)
class Stager:
    """Stages the plans of one graph. No head of a table that a branch has moves."""

    store: Store
    clock: Clock

    def stage(self, plan: WritePlan[Report], view: View) -> StagedTables:
        """Write the files of a plan, and create the tables of new types."""
        tables = {key: self._own_table(view, key) for key in plan.changes}
        if plan.prepare is not None:
            plan.prepare(tables)
        staged = {key: stage(tables[key]) for key, stage in plan.changes.items()}
        changes = {key: write for key, write in staged.items() if write is not None}
        if plan.schema_change is None:
            return StagedTables(changes)
        self.keep_schema(plan)
        created = map(self._create_table, plan.schema_change.created)
        return StagedTables(changes, dict(created))

    def keep_schema(self, plan: WritePlan[Report]) -> None:
        """Store the schema that a plan sets, or renew it, so that no cleanup removes it."""
        if plan.schema_change is not None:
            schemas.keep(self.store.objects, plan.schema_change.schema, now=self.clock.now())

    def preview(self, plan: WritePlan[Report], staged: StagedTables, view: View) -> View:
        """The view that a staged write would make. Its tables are detached versions."""
        change = plan.schema_change
        changed = {} if change is None else change.changed
        before = {new.key: old for old, new in changed.items()}

        def open_table(key: TableKey) -> Table:
            if key in staged.created:
                return self.store.tables.open_pin(staged.created[key])
            old_key = before.get(key, key)
            if old_key in staged.changes:
                return heads.preview(staged.changes[old_key])
            return view.data.table(old_key)

        catalog = view.catalog if change is None else change.schema.catalog
        return View(view.snapshot, catalog, Data(open_table))

    def _own_table(self, view: View, key: TableKey) -> Table:
        """The table at its pin, on a ref that only this branch moves.

        A branch gets its own ref of a table at its first write there. A staged write can only be
        committed where it was staged, so the ref is created first; until the publish nothing refers
        to it, and an abandoned one is harmless: its name is never reused.
        """
        snapshot = view.snapshot
        pin = snapshot.pin(key)
        if snapshot.owns(pin):
            return view.data.table(key)
        fork = f"{snapshot.ref}/{self.clock.ulid()}"
        table = self.store.refs.start(pin.location, fork, source=pin.ref, version=pin.version)
        hit(Failpoint.WRITE_AFTER_EACH_FORK)
        return table

    def _create_table(self, created: CreatedTable) -> tuple[TableKey, TablePin]:
        """Create the table of a new type, at a location that nothing refers to until the publish.

        On a branch other than main it is shared, like any table of its source: the branch gets its
        own ref with its first write.
        """
        author = heads.Authorship(OperationId(self.clock.ulid()), OperationKind.SCHEMA_APPLY)
        pin = create_table(self.store, self.clock, created.type, author)
        if created.fill is not None:
            write = created.fill(self.store.tables.open_pin(pin))
            if write is not None:
                table = heads.apply(write, author)
                pin = replace(pin, version=table.version, row_count=write.row_count)
        hit(Failpoint.WRITE_AFTER_EACH_TABLE)
        return pin.key, replace(pin, identity=created.identity)
