"""Tables of rows: the columns of the values that later steps use, and where their ids are from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from omnigraph.query import ir
from omnigraph.query.lowering.elimination import ColumnSum
from omnigraph.query.lowering.operands import Scope
from omnigraph.query.lowering.state import LoweringState
from omnigraph.query.lowering.usage import Use
from omnigraph.relational.plans import Place
from omnigraph.relational.trees import column, table


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of rows: the column of each used value, and the places its ids were read from.

    Attributes:
        weight: The column with the number of rows that each row stands for; None for 1.
        carried: The columns with sums over those rows.
        scores: The columns with the scores of rankings.
        optional: The variables that may be null.
        is_distinct: Whether no two rows have the same values.
    """

    table: str
    columns: Mapping[Use, str]
    places: Mapping[str, tuple[Place, ...]]
    weight: str | None = None
    carried: Mapping[ColumnSum, str] = field(default_factory=dict)
    scores: Mapping[ir.Ranking, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    is_distinct: bool = False

    def scope(self, alias: str) -> Scope:
        """The values of variables as columns of this table under an alias."""
        return {use: column(name, alias) for use, name in self.columns.items()}

    def distinct_columns(self, uses: Iterable[Use], state: LoweringState) -> Rows:
        """The distinct values of a few columns."""
        columns = {use: self.columns[use] for use in sorted(uses)}
        values = [column(name, "o") for name in columns.values()]
        query = exp.select(*values).from_(table(self.table, "o")).distinct()
        variables = {variable for variable, _ in columns}
        places = places_of(variables, self.places)
        table_ = state.builder.define(query, reused=True)
        return Rows(table_, columns, places, optional=self.optional & variables)

    def same(self, ids: Iterable[Use], other: Rows, *, ours: str, theirs: str) -> exp.Expr:
        """Whether a row of this table and one of another have these ids in common."""
        return exp.and_(
            *(
                (exp.NullSafeEQ if use[0] in self.optional or not ir.is_row(use[0]) else exp.EQ)(
                    this=column(self.columns[use], ours),
                    expression=column(other.columns[use], theirs),
                )
                for use in ids
            )
        )

    @property
    def values(self) -> tuple[str, ...]:
        """The columns of values, weights and sums."""
        weights = () if self.weight is None else (self.weight, *self.carried.values())
        return *self.columns.values(), *weights


def places_of(
    variables: Iterable[str], places: Mapping[str, tuple[Place, ...]]
) -> dict[str, tuple[Place, ...]]:
    """The places of some variables; those of a variable of several types are by type, too."""
    names = set(variables)
    return {key: each for key, each in places.items() if key.partition(":")[0] in names}


def place_key(variable: str, label: str | None) -> str:
    """The key of a variable's places, of the nodes of one type if it has several."""
    return variable if label is None else f"{variable}:{label}"
