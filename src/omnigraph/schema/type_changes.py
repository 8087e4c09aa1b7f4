"""The change of one type: its old and new declaration, and where the values of columns are from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.schema.catalog import ENDPOINTS, EdgeType, Property, SchemaType
from omnigraph.schema.retyping import Retyping, retyping
from omnigraph.schema.steps import Cost, Refusal, RuleCheck, RuleWord, SchemaStep, StepKind


class ColumnSource(StrEnum):
    """Where a column of the changed table has its values from."""

    KEPT = "kept"
    """The old column, perhaps by another name."""
    CONVERTED = "converted"
    """The values of the old column, converted to another type."""
    DEFAULT = "default"
    """The default of the property, for every row."""
    EXPRESSION = "expression"
    """The fill that the caller requested, evaluated for each row."""
    NULLS = "nulls"
    """Null for every row; or there are no rows."""


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A column of a type's table after the change.

    Attributes:
        definition: What the column holds; None for `id`, `src` and `dst`.
        old_name: The column that it is kept or converted from.
    """

    name: str
    definition: Property | None
    old_name: str | None
    source: ColumnSource

    @property
    def needs_values(self) -> bool:
        """Whether values have to be written for the rows that exist."""
        return self.source not in (ColumnSource.KEPT, ColumnSource.NULLS)


@dataclass(frozen=True, slots=True)
class TypeChange:
    """A type of the new schema, and the type of the old schema that it continues.

    Attributes:
        names: By its new name, the old name of each property that continues one.
        rows: How many rows the type has.
        source_rows: For an edge type, how many rows its new source has.
        fills: The new properties for which the caller has a value for each row.
        conversions: The properties whose conversion the caller requested.
    """

    old: SchemaType
    new: SchemaType
    names: Mapping[str, str]
    rows: int
    source_rows: int = 0
    fills: Collection[str] = ()
    conversions: Collection[str] = ()

    def old_property(self, name: str) -> Property | None:
        """The property that one of the new type continues."""
        old_name = self.names.get(name)
        return None if old_name is None else self.old.property_named(old_name)

    @property
    def new_names(self) -> dict[str, str]:
        """By the old name of a column, its new name; dropped ones are left out."""
        return {old: new for new, old in self.names.items()} | {end: end for end in ENDPOINTS}

    def retyping(self, name: str) -> Retyping:
        """What happens to the type of a property that is continued."""
        old = self.old_property(name)
        assert old is not None, "a new property has no former type"
        return retyping(old.type, self.new.property_named(name).type)

    def source_of(self, property_: Property) -> ColumnSource:
        """Where the values of a property are from."""
        if self.old_property(property_.name) is not None:
            if self.retyping(property_.name).keeps_values:
                return ColumnSource.KEPT
            # A column without rows is made anew, since not every pair of types converts.
            return ColumnSource.CONVERTED if self.rows else ColumnSource.NULLS
        if not self.rows:
            return ColumnSource.NULLS
        if property_.name in self.fills:
            return ColumnSource.EXPRESSION
        return ColumnSource.NULLS if property_.default is None else ColumnSource.DEFAULT

    def have_values(self, names: Iterable[str]) -> bool:
        """Whether rows can have values in all of these columns: constraints exempt nulls."""
        return bool(self.rows) and all(
            name in ENDPOINTS
            or self.source_of(self.new.property_named(name)) is not ColumnSource.NULLS
            for name in names
        )

    def columns(self) -> tuple[ColumnChange, ...]:
        """The columns of the type's table after the change, in order."""
        ends = ENDPOINTS if isinstance(self.new, EdgeType) else ()
        system = [ColumnChange(name, None, name, ColumnSource.KEPT) for name in ("id", *ends)]
        return (*system, *(self._column(property_) for property_ in self.new.properties))

    def _column(self, property_: Property) -> ColumnChange:
        source = self.source_of(property_)
        kept = source in (ColumnSource.KEPT, ColumnSource.CONVERTED)
        old_name = self.names[property_.name] if kept else None
        return ColumnChange(property_.name, property_, old_name, source)

    def check(self, rule: RuleWord, *names: str) -> RuleCheck:
        """A check of the new type."""
        return RuleCheck(rule, self.new.table_key, names)

    def step(
        self,
        kind: StepKind,
        name: str | None = None,
        *,
        before: str | None = None,
        after: str | None = None,
    ) -> SchemaStep:
        """A step that costs nothing."""
        return SchemaStep(kind, str(self.new.table_key), name, before, after)

    def validated(
        self, kind: StepKind, check: RuleCheck, *, before: str | None = None, after: str | None
    ) -> SchemaStep:
        """A step that adds or tightens a rule: checked where rows can break it."""
        single = check.properties[0] if len(check.properties) == 1 else None
        name = None if single in ENDPOINTS else single
        if not self.have_values(check.properties):
            return self.step(kind, name, before=before, after=after)
        key = str(self.new.table_key)
        return SchemaStep(kind, key, name, before, after, Cost.VALIDATED, self.rows, (check,))

    def refused(
        self,
        kind: StepKind,
        refusal: Refusal,
        name: str | None = None,
        *,
        before: str | None,
        after: str | None,
    ) -> SchemaStep:
        """A step that is refused because the type has rows."""
        key = str(self.new.table_key)
        return SchemaStep(kind, key, name, before, after, Cost.REFUSED, self.rows, refusal=refusal)
