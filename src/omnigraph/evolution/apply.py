"""The writer of schema changes: the steps become staged tables, checked rules and one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Final

from omnigraph.choices import EngineName
from omnigraph.clock import Clock
from omnigraph.engine.choose import Choice, Measure, by_size
from omnigraph.engine.protocol import Data, Engines
from omnigraph.evolution.backfill import ColumnFiller, TableFill
from omnigraph.evolution.checks import RowFaults, RuleChecks, require_kept
from omnigraph.evolution.fills import compile_fill
from omnigraph.evolution.recipes import make_recipe
from omnigraph.evolution.values import Recipe
from omnigraph.integrity.violations import IntegrityReport
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.identities import TypeIdentity, free_origin
from omnigraph.model.tables import TableKey
from omnigraph.schema.accepted import AcceptedSchema
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.schema.change_requests import PropertyPath
from omnigraph.schema.matching import property_names
from omnigraph.schema.plan import SchemaPlan, plan_by_hints
from omnigraph.schema.steps import Cost, RuleCheck, RuleWord, SchemaStep, StepKind
from omnigraph.schema.type_changes import ColumnChange, ColumnSource
from omnigraph.storage import heads
from omnigraph.storage.column_files import TableColumn
from omnigraph.storage.reshape import plan_reshape, stage_reshape
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import (
    CreatedTable,
    PinChange,
    SchemaChange,
    StagedTables,
    WritePlan,
)

BACKFILL_LOCAL_ROWS_MAX: Final = 8_000_000
"""Values of columns, counted once per row and column, that a schema change writes in this process;
above, `auto` chooses Spark."""


Fillers = Callable[[EngineName], ColumnFiller]
"""Returns what fills columns on the engine of a name."""


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """What a caller wants of a schema change.

    Attributes:
        fills: By type and property, the expression for the values of a new property.
        conversions: The properties whose values may be converted, though some may fail.
        engine: `local`, `spark` or `auto`.
    """

    schema: AcceptedSchema
    fills: Mapping[PropertyPath, str] = field(default_factory=dict)
    conversions: frozenset[PropertyPath] = frozenset()
    engine: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeReport:
    """What a schema change does, before it is done.

    Attributes:
        choice: The engine that writes new values, and why it was chosen.
    """

    plan: SchemaPlan
    choice: Choice


@dataclass(frozen=True, slots=True)
class SchemaApplication:
    """One schema change, planned on a view of its branch.

    Attributes:
        sees: Whether the actor may read a type. A plan treats all other types as if they had a row.
    """

    store: Store
    clock: Clock
    request: ChangeRequest
    engines: Engines
    fillers: Fillers
    sees: Callable[[str], bool] = lambda _: True

    def steps(self, view: View) -> SchemaPlan:
        """The steps from the schema of a view to the requested one; nothing is read or written."""
        plan = plan_by_hints(
            view.catalog,
            self.request.schema.catalog,
            row_counts={
                key: pin.row_count if self.sees(key.type_name) else 1
                for key, pin in view.snapshot.pins.items()
            },
            fills=self.request.fills.keys(),
            conversions=self.request.conversions,
        )
        if not plan.errors:
            self._require_expressions(plan)
        return plan

    def reads(self, plan: SchemaPlan) -> frozenset[str]:
        """The types whose rows decide about a plan, by their names until now."""
        keys = set(self._checks(plan.new, plan.checks).tables())
        before = plan.matching.types
        names = {before[key].type_name for key in keys if key in before}
        costly = {step.declaration for step in plan.steps if _reads_rows(step)}
        return frozenset(
            names | {old.type_name for key, old in before.items() if str(key) in costly}
        )

    def _require_expressions(self, plan: SchemaPlan) -> None:
        """Refuse fills that are no expressions, also those of types without rows."""
        for type_ in plan.new.types:
            old_key = plan.matching.types.get(type_.table_key)
            for column in plan.tables.get(type_.table_key, ()):
                text = self.request.fills.get((type_.name, column.name))
                is_new = column.definition is not None and column.old_name is None
                if text is None or old_key is None or not is_new:
                    continue
                assert column.definition is not None, "it is new"
                old = plan.old.type_of(old_key)
                compile_fill(old, column.definition, text, new_name=type_.name)

    def plan(self, plan: SchemaPlan, view: View) -> WritePlan[ChangeReport]:
        """What the steps do to each table."""
        plan.require_allowed()
        tables = tuple(self._tables(plan, view))
        choice = by_size(self.request.engine, _measure(tables))
        report = ChangeReport(plan, choice)
        if self.request.schema.digest == view.snapshot.schema_digest:
            return WritePlan(report)
        faults = RowFaults()
        nulls = self._find_nulls(plan, view)
        faults.add(nulls, *(breach.type_name for breach in nulls.counts))
        filler = self.fillers(choice.engine)
        checks = self._checks(plan.new, _later_checks(plan))
        return WritePlan(
            report,
            changes={
                table.old.table_key: partial(table.stage, filler, self.clock, faults)
                for table in tables
            },
            locks=_locks(plan, checks),
            note=_describe_fills(self.request.fills),
            can_replan=True,
            schema_change=_schema_change(plan, view.snapshot, self.request.schema),
            verify=partial(self._verify, plan, checks, view, faults),
        )

    def _tables(self, plan: SchemaPlan, view: View) -> Iterator[_TableChange]:
        """The tables whose columns change."""
        for type_ in plan.new.types:
            old_key = plan.matching.types.get(type_.table_key)
            if old_key is None:
                continue
            old = plan.old.type_of(old_key)
            columns = plan.columns(type_)
            if not is_reshaped(old, type_, columns):
                continue
            recipes = tuple(
                make_recipe(old, type_, column, self.request.fills.get((type_.name, column.name)))
                for column in columns
                if column.needs_values
            )
            yield _TableChange(old, type_, columns, recipes, view.snapshot.row_count(old_key))

    def _checks(self, catalog: Catalog, checks: Iterable[RuleCheck]) -> RuleChecks:
        return RuleChecks(catalog, tuple(checks), self.engines, self.request.engine)

    def _find_nulls(self, plan: SchemaPlan, view: View) -> IntegrityReport:
        """Report the rows without a value that the plan requires, by the names of the old schema.

        Before anything is staged: the new column may have no nulls, so none can be looked for.
        """
        checks = tuple(_null_checks(plan))
        return self._checks(_requiring(plan.old, checks), checks).run(view.data)

    def _verify(
        self,
        plan: SchemaPlan,
        checks: RuleChecks,
        view: View,
        faults: RowFaults,
        staged: StagedTables,
    ) -> None:
        """Check new and tighter rules on the rows as they will be, before anything is visible.

        Rules of types whose rows lack values are not checked: there are no such rows.

        Args:
            faults: What is known about the rows that lack values.
        """

        @cache
        def open_table(key: TableKey) -> Table:
            if key in staged.created:
                return self.store.tables.open_pin(staged.created[key])
            old_key = plan.matching.types[key]
            if old_key in staged.changes:
                return heads.preview(staged.changes[old_key])
            return view.data.table(old_key)

        before = plan.matching.types
        failed = {key for key, old_key in before.items() if old_key.type_name in faults.types}
        faults.add(checks.without(failed).run(Data(open_table)))
        require_kept(faults.report())


@dataclass(frozen=True, slots=True)
class _TableChange:
    """What a schema change does to the columns of one table.

    Attributes:
        recipes: How to compute the values of columns that need some.
        row_count: How many rows the table has.
    """

    old: SchemaType
    new: SchemaType
    columns: tuple[ColumnChange, ...]
    recipes: tuple[Recipe, ...]
    row_count: int

    def stage(
        self, filler: ColumnFiller, clock: Clock, faults: RowFaults, table: Table
    ) -> StagedWrite | None:
        """Write the new values of the table's rows, and assemble its transaction.

        Returns None if rows lack values; `faults` has them, and the change will be refused.
        """
        if self.old.name in faults.types:
            return None
        filled = {recipe.target.field.name for recipe in self.recipes}
        reshape = plan_reshape(table, storage_columns(self.new, self.columns), filled=filled)
        if not self.recipes:
            return stage_reshape(table, reshape.columns)
        fill = TableFill(table, self.recipes, reshape.copies)
        [result] = filler.fill_columns([fill], clock)
        if not result.report.is_clean:
            faults.add(result.report, self.old.name)
            return None
        return stage_reshape(table, reshape.columns, result.files)


def storage_columns(type_: SchemaType, columns: tuple[ColumnChange, ...]) -> list[TableColumn]:
    """The columns as storage has them."""
    fields = table_schema(type_)
    return [
        TableColumn(
            fields.field(column.name),
            column.old_name if column.source is ColumnSource.KEPT else None,
        )
        for column in columns
    ]


def _reads_rows(step: SchemaStep) -> bool:
    """Whether a step depends on rows, or lets somebody else read them.

    Texts that are embedded are sent to the provider of a model, and rules of a policy hold for
    names of types.
    """
    if step.cost is not Cost.METADATA or step.kind in _REVEALING:
        return True
    return step.kind is StepKind.ADD_PROPERTY and "@embed(" in (step.after or "")


_REVEALING: Final = frozenset({StepKind.ADD_EMBED, StepKind.CHANGE_EMBED, StepKind.RENAME_TYPE})


def _null_checks(plan: SchemaPlan) -> Iterator[RuleCheck]:
    """The checks for nulls of columns that stay, by the names of the old schema.

    Columns that get new values are checked when those are made.
    """
    for check in plan.checks:
        if check.rule is not RuleWord.REQUIRED:
            continue
        for column in plan.tables[check.table]:
            if column.name in check.properties and column.source is ColumnSource.KEPT:
                assert column.old_name is not None, "it is kept"
                yield RuleCheck(check.rule, plan.matching.types[check.table], (column.old_name,))


def _later_checks(plan: SchemaPlan) -> Iterator[RuleCheck]:
    """The checks of rows as they will be."""
    return (check for check in plan.checks if check.rule is not RuleWord.REQUIRED)


def _requiring(catalog: Catalog, checks: Iterable[RuleCheck]) -> Catalog:
    """The catalog with these properties required."""
    required = {(check.table, name) for check in checks for name in check.properties}

    def require(type_: SchemaType) -> Any:
        properties = tuple(
            replace(property_, nullable=False)
            if (type_.table_key, property_.name) in required
            else property_
            for property_ in type_.properties
        )
        return replace(type_, properties=properties)

    return replace(
        catalog,
        node_types=tuple(map(require, catalog.node_types)),
        edge_types=tuple(map(require, catalog.edge_types)),
    )


def is_reshaped(old: SchemaType, new: SchemaType, columns: tuple[ColumnChange, ...]) -> bool:
    """Whether the table gets other columns, and not only other rules."""
    # In a merge, a new column may have the name and the type of one that is dropped.
    is_other = any(column.old_name != column.name or column.needs_values for column in columns)
    return is_other or table_schema(old) != table_schema(new)


def _describe_fills(fills: Mapping[PropertyPath, str]) -> str:
    """What the commit says about its fills: the schema alone does not explain these values."""
    return "\n".join(f"filled {'.'.join(path)} with {text}" for path, text in fills.items())


def _measure(tables: tuple[_TableChange, ...]) -> Iterator[Measure]:
    """How many values are written; a row counts once for each of its new values."""
    count = sum(table.row_count * len(table.recipes) for table in tables)
    yield Measure.of_count(count, BACKFILL_LOCAL_ROWS_MAX, "value to write")


def _locks(plan: SchemaPlan, checks: RuleChecks) -> frozenset[TableKey]:
    """The tables that no other writer may write to between the first effect and the publish.

    Their types change, are dropped, or have rows that new rules depend on. What a step costs
    depends on the number of rows, too: a type without any accepts everything.
    """
    before = plan.matching.types
    return plan.changed_keys | {before[key] for key in checks.tables() if key in before}


def _schema_change(plan: SchemaPlan, snapshot: Snapshot, schema: AcceptedSchema) -> SchemaChange:
    matching = plan.matching
    changed = {}
    for key, old_key in matching.types.items():
        pin, new = snapshot.pin(old_key), plan.new.type_of(key)
        before = property_names(plan.old.type_of(old_key))
        identity = pin.identity.evolve(before, matching.names_before(new))
        if (key, identity) != (old_key, pin.identity):
            changed[old_key] = PinChange(key, identity)
    return SchemaChange(
        schema,
        created=tuple(_created(plan, snapshot)),
        changed=changed,
        dropped=frozenset(type_.table_key for type_ in matching.dropped_types(plan.old)),
        declared=plan.changed_types,
    )


def _created(plan: SchemaPlan, snapshot: Snapshot) -> Iterator[CreatedTable]:
    """The new types, each with an origin that no type of its kind has or had."""
    origins = {(pin.key.kind, pin.identity.origin) for pin in snapshot.pins.values()}
    origins |= {(dead.key.kind, dead.origin) for dead in snapshot.tombstones}
    for type_ in plan.matching.new_types(plan.new):
        kind = type_.table_key.kind
        taken = {origin for other, origin in origins if other is kind}
        yield CreatedTable(type_, TypeIdentity(free_origin(type_.name, taken)))
