"""The target of a merge under the merged schema: its tables with other columns, before any moves.

Columns and values are staged like those of a schema change (docs/decisions/0012), and shown to the
rules as detached versions, to which no head refers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from omnigraph.changes.graphs import Side
from omnigraph.clock import Clock
from omnigraph.engine.protocol import Data
from omnigraph.evolution.apply import is_reshaped, storage_columns
from omnigraph.evolution.backfill import ColumnFiller, TableFill
from omnigraph.evolution.recipes import make_recipe
from omnigraph.evolution.values import ConstantRecipe, Recipe, RecipeTarget
from omnigraph.merge.schemas import MergedSchema
from omnigraph.model.ids import CommitId
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.change_codes import ChangeCode
from omnigraph.schema.plan import SchemaPlan, plan_change
from omnigraph.schema.retyping import Retyping, retyping
from omnigraph.schema.steps import RuleCheck, RuleWord, SchemaStep
from omnigraph.schema.type_changes import ColumnChange, ColumnSource
from omnigraph.storage import heads
from omnigraph.storage.column_files import ColumnFile
from omnigraph.storage.reshape import plan_reshape, stage_reshape
from omnigraph.storage.staging import Rows, StagedWrite, stage_overwrite
from omnigraph.storage.tables import Table, TableAddress
from omnigraph.transaction.view import View

_FOUND_IN_ROWS = frozenset(
    {ChangeCode.NO_VALUE, ChangeCode.NO_CONVERSION, ChangeCode.CONVERSION_NOT_REQUESTED}
)
"""Refusals of a schema change that a merge does not need: rows of the source may have values, and
rows without one are conflicts."""


@dataclass(frozen=True, slots=True)
class TableReshape:
    """Other columns for one table of the target.

    Attributes:
        missing: The required columns that no row of the target has a value for.
    """

    old: SchemaType
    new: SchemaType
    columns: tuple[ColumnChange, ...]
    recipes: tuple[Recipe, ...]
    missing: frozenset[str]

    def stage(
        self,
        table: Table,
        filler: ColumnFiller,
        clock: Clock,
        *,
        rows_change: bool,
        nullable: frozenset[str] = frozenset(),
    ) -> StagedWrite:
        """Write the values of new columns, and assemble the transaction; no head moves.

        A required column without a value has a filler, in rows that the merge replaces or deletes.

        Args:
            rows_change: Whether changes of rows will be part of the transaction.
            nullable: Columns that have nulls instead of fillers, for rules to find them.
        """
        recipes = tuple(_nullable_recipe(recipe, nullable) for recipe in self.recipes)
        columns = [
            column.with_nulls(allowed=True) if column.name in nullable else column
            for column in storage_columns(self.new, self.columns)
        ]
        filled = {recipe.target.field.name for recipe in recipes}
        plan = plan_reshape(table, columns, filled=filled, rows_change=rows_change)
        files: tuple[ColumnFile, ...] = ()
        if recipes or plan.copies:
            [result] = filler.fill_columns([TableFill(table, recipes, plan.copies)], clock)
            files = result.files
        return stage_reshape(table, plan.columns, files)


def _nullable_recipe(recipe: Recipe, nullable: frozenset[str]) -> Recipe:
    definition = recipe.target.definition
    if definition.name not in nullable:
        return recipe
    target = replace(recipe.target, definition=replace(definition, nullable=True))
    return replace(recipe, target=target)


@dataclass(slots=True)
class MergeTarget:
    """The target of a merge as the merged schema has it.

    Attributes:
        view: The target as it is.
        source: What is merged.
        steps: From the schema of the target to the merged one.
        reshapes: By their keys in the merged schema, the tables that get other columns.
    """

    view: View
    source: Side
    schema: MergedSchema
    filler: ColumnFiller
    clock: Clock
    steps: SchemaPlan = field(init=False)
    reshapes: Mapping[TableKey, TableReshape] = field(init=False)
    _staged: dict[tuple[object, ...], StagedWrite] = field(init=False, default_factory=dict)
    _shown: dict[TableKey, Table] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.steps = _plan_steps(self.view, self.schema)
        self.reshapes = {reshape.new.table_key: reshape for reshape in self._reshapes()}

    @property
    def commit_id(self) -> CommitId:
        """The commit that the target is at."""
        return self.view.snapshot.head.commit_id

    @property
    def merged_view(self) -> View:
        """The target with the columns that it will have, and with the rows that it has."""
        return View(self.view.snapshot, self.schema.catalog, Data(self.table))

    @property
    def refusals(self) -> tuple[SchemaStep, ...]:
        """The steps that rows of the target rule out."""
        return tuple(
            step
            for step in self.steps.refusals
            if step.refusal is not None and step.refusal.code not in _FOUND_IN_ROWS
        )

    def checks(self) -> tuple[RuleCheck, ...]:
        """The rules that are new to the target or to the ids of the source, once each."""
        checks = list(self.steps.checks)
        for key, reshape in self.reshapes.items():
            checks += (RuleCheck(RuleWord.REQUIRED, key, (name,)) for name in reshape.missing)
        theirs = _plan_steps_from(self.source, self.schema)
        checks += (check for check in theirs.checks if check.rule is RuleWord.KEY)
        return tuple(dict.fromkeys(checks))

    def locks(self) -> frozenset[TableKey]:
        """The tables whose types change, are dropped, or have rows that new rules depend on."""
        checked = (self.old_key(check.table) for check in self.checks())
        return self.steps.changed_keys | {key for key in checked if key is not None}

    def table(self, key: TableKey) -> Table:
        """A table of the merged schema, with the rows of the target."""
        if key not in self._shown:
            self._shown[key] = self._show(key)
        return self._shown[key]

    def staged(self, key: TableKey, table: Table, *, rows_change: bool) -> StagedWrite | None:
        """The transaction that gives a table its columns; None if it has them."""
        reshape = self.reshapes.get(key)
        if reshape is None:
            return None
        return self._stage(reshape, table, rows_change=rows_change, nullable=frozenset())

    def shown(self, key: TableKey) -> StagedWrite | None:
        """Like `staged`, for the rules: where there is no value, there is a null."""
        reshape = self.reshapes.get(key)
        if reshape is None:
            return None
        table = self.view.data.table(reshape.old.table_key)
        return self._stage(reshape, table, rows_change=True, nullable=self._nullable(reshape))

    def created_table(self, key: TableKey, rows: Rows | None = None) -> Table:
        """A table of a type that the target lacks, as a detached version of the source's table.

        Args:
            rows: Its rows; none when None.
        """
        theirs = self.schema.key_at(self.source.snapshot.head.commit_id, key)
        assert theirs is not None, "a type that the target lacks is one of the source"
        if rows is None:
            rows = table_schema(self.schema.catalog.type_of(key)).empty_table()
        return heads.preview(stage_overwrite(self.source.data.table(theirs), rows))

    def old_key(self, key: TableKey) -> TableKey | None:
        """The key that a type of the merged schema has in the target; None if it has none."""
        return self.schema.key_at(self.commit_id, key)

    def _show(self, key: TableKey) -> Table:
        old_key = self.old_key(key)
        if old_key is None:
            return self.created_table(key)
        staged = self.shown(key)
        return self.view.data.table(old_key) if staged is None else heads.preview(staged)

    def _stage(
        self, reshape: TableReshape, table: Table, *, rows_change: bool, nullable: frozenset[str]
    ) -> StagedWrite:
        # What the rules saw is what is applied, unless the target has yet to get its own ref.
        memory: tuple[TableAddress, frozenset[str], bool] = (table.address, nullable, rows_change)
        if memory not in self._staged:
            self._staged[memory] = reshape.stage(
                table, self.filler, self.clock, rows_change=rows_change, nullable=nullable
            )
        return self._staged[memory]

    def _nullable(self, reshape: TableReshape) -> frozenset[str]:
        """The columns that may lack values of the target's rows."""
        checked = {
            name
            for check in self.steps.checks
            if check.rule is RuleWord.REQUIRED and check.table == reshape.new.table_key
            for name in check.properties
        }
        converted = {
            column.name
            for column in reshape.columns
            if column.source is ColumnSource.CONVERTED
            and column.definition is not None
            and not column.definition.nullable
        }
        return reshape.missing | checked | converted

    def _reshapes(self) -> Iterator[TableReshape]:
        for type_ in self.schema.catalog.types:
            key = type_.table_key
            old_key = self.old_key(key)
            if old_key is None:
                continue
            old = self.view.catalog.type_of(old_key)
            columns = tuple(
                _without_conversion(old, column) for column in self.steps.columns(type_)
            )
            if not is_reshaped(old, type_, columns):
                continue
            has_rows = self.view.snapshot.row_count(old_key) > 0
            missing = frozenset(
                column.name
                for column in columns
                if has_rows
                and column.source is ColumnSource.NULLS
                and column.definition is not None
                and not column.definition.nullable
            )
            recipes = tuple(_recipes(old, type_, columns, missing))
            yield TableReshape(old, type_, columns, recipes, missing)


def _recipes(
    old: SchemaType, new: SchemaType, columns: tuple[ColumnChange, ...], missing: frozenset[str]
) -> Iterator[Recipe]:
    for column in columns:
        if column.needs_values:
            yield make_recipe(old, new, column, None)
        elif column.name in missing:
            assert column.definition is not None, "system columns are kept"
            yield ConstantRecipe(RecipeTarget(new.name, column.definition), None)


def _without_conversion(old: SchemaType, column: ColumnChange) -> ColumnChange:
    """The column with no values, where none of those that it has converts."""
    if column.source is not ColumnSource.CONVERTED:
        return column
    assert column.old_name is not None, "it is converted from a column"
    assert column.definition is not None, "system columns are kept"
    if retyping(old.property_named(column.old_name).type, column.definition.type) is (
        Retyping.IMPOSSIBLE
    ):
        return replace(column, old_name=None, source=ColumnSource.NULLS)
    return column


def _plan_steps(view: View, schema: MergedSchema) -> SchemaPlan:
    return _plan_steps_from(Side(view.snapshot, view.data), schema)


def _plan_steps_from(side: Side, schema: MergedSchema) -> SchemaPlan:
    """The steps from the schema of a side; what may be converted is converted."""
    commit_id = side.snapshot.head.commit_id
    conversions = [
        (type_.name, property_.name)
        for type_ in schema.catalog.types
        for property_ in type_.properties
    ]
    return plan_change(
        schema.points[commit_id].catalog,
        schema.catalog,
        schema.matching(commit_id),
        row_counts={key: pin.row_count for key, pin in side.snapshot.pins.items()},
        conversions=conversions,
    )
