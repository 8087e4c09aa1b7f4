"""Matching: the ids of the rows that pass a mutation's tests."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Final

import pyarrow as pa
from sqlglot import exp

from omnigraph.engine.protocol import Data, Engine
from omnigraph.limits import COMPILED_QUERIES_MAX
from omnigraph.model.types import Scalar
from omnigraph.query import ir
from omnigraph.query.lowering.expressions import filter_tree, value_tree
from omnigraph.query.lowering.keys import fixed_key, seeds_of
from omnigraph.query.lowering.operands import Given, columns_in, operands_of
from omnigraph.query.lowering.plan import Template
from omnigraph.relational.builder import PlanBuilder
from omnigraph.relational.plans import GivenRows, OutputColumn, Plan
from omnigraph.relational.trees import column, named, table
from omnigraph.schema.catalog import Property, SchemaType

_ROW: Final = "n"
_PLACE: Final = "place of the row"
"""A column for the order of rows; no property has such a name."""

_ID: Final = OutputColumn("id", Scalar.STRING, nullable=False)


@dataclass(frozen=True, slots=True)
class Predicate:
    """The tests of one statement, and the values that they are run with."""

    type: SchemaType
    tests: tuple[ir.RowTest, ...]
    given: Given

    @classmethod
    def of(cls, type_: SchemaType, tests: tuple[ir.RowTest, ...], given: Given) -> Predicate:
        """The predicate, without the parameters that its tests do not use."""
        operands = chain.from_iterable(map(operands_of, tests))
        names = {value.name for value in operands if isinstance(value, ir.ParameterValue)}
        values = {name: value for name, value in given.values.items() if name in names}
        return cls(type_, tests, replace(given, values=values))

    def only_id(self) -> str | None:
        """The one id that a row can have if it passes; every row that has it does pass."""
        match self.tests:
            case (
                ir.Comparison(
                    ir.ColumnValue(_, "id"),
                    ir.Operator.EQ,
                    (ir.Constant() | ir.ParameterValue()) as right,
                ),
            ):
                value = self.given.known(right).value
                return value if isinstance(value, str) else None
            case _:
                pass
        key = fixed_key(self.type, self.tests, self.given)
        # Equal keys, and no others, have the same id: no other test may remain.
        if key is None or len(self.tests) != len(key.operands):
            return None
        return key.identity(self.given)

    def columns(self) -> tuple[str, ...]:
        """The columns that the tests read, and `id`."""
        operands = chain.from_iterable(map(operands_of, self.tests))
        names = [value.column for value in operands if isinstance(value, ir.ColumnValue)]
        return tuple(dict.fromkeys(["id", *names]))


class Matcher:
    """Finds the rows that pass, on an engine; caches plans for predicates of the same shape.

    Attributes:
        engine: The one that it runs on.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._template: Callable[[_PredicateShape], Template]
        self._template = lru_cache(maxsize=COMPILED_QUERIES_MAX)(_lower)

    def match_committed(self, predicate: Predicate, data: Data) -> pa.Array:
        """The ids of the committed rows that pass."""
        plan = self._template(_PredicateShape(predicate)).plan(predicate.given)
        return self._ids(plan, data)

    def match_pending(self, predicate: Predicate, rows: pa.Table, data: Data) -> pa.Array:
        """The ids of the given rows that pass."""
        plan = self._template(_PredicateShape(predicate)).plan(predicate.given)
        (name,) = plan.relations
        plan = replace(plan, relations={name: GivenRows()}, reductions=())
        given = {name: rows.select(list(predicate.columns()))}
        return self._ids(plan, replace(data, given=given))

    def compute(
        self,
        type_: SchemaType,
        assignments: Sequence[ir.ComputedAssignment],
        rows: pa.Table,
        given: Given,
        data: Data,
    ) -> dict[str, pa.ChunkedArray]:
        """The values of computed assignments, by property, in the order of the rows."""
        builder = PlanBuilder()
        relation = builder.give()
        read_columns = [each for one in assignments for each in columns_in(one.value)]
        names = [each.column for each in read_columns]
        scope = {(each.variable, each.column): column(each.column, _ROW) for each in read_columns}
        trees = [value_tree(one.value, scope, given, builder.bindings) for one in assignments]
        query = exp.select(named(column(_PLACE, _ROW), "p")).from_(table(relation, _ROW))
        query = query.select(*(named(tree, f"c{at}") for at, tree in enumerate(trees)))
        columns = [OutputColumn(_PLACE, Scalar.I64, nullable=False)]
        columns += [_output(type_.property_named(one.property)) for one in assignments]
        places = pa.array(range(len(rows)), pa.int64())
        read = rows.select(list(dict.fromkeys(names))).append_column(_PLACE, places)
        answer = self.engine.run(
            builder.plan(query, columns), replace(data, given={relation: read})
        ).sort_by(_PLACE)
        return {one.property: answer[one.property] for one in assignments}

    def _ids(self, plan: Plan, data: Data) -> pa.Array:
        return self.engine.run(plan, data)["id"].combine_chunks()


def _output(property_: Property) -> OutputColumn:
    return OutputColumn(property_.name, property_.type, nullable=True)


@dataclass(frozen=True, eq=False, slots=True)
class _PredicateShape:
    """A predicate, equal to any that the same plan can run."""

    predicate: Predicate

    @property
    def _key(self) -> Hashable:
        predicate = self.predicate
        return predicate.type, predicate.tests, predicate.given.shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _PredicateShape) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _lower(shape: _PredicateShape) -> Template:
    predicate = shape.predicate
    builder = PlanBuilder()
    relation = builder.scan(predicate.type.table_key, predicate.columns())
    scope = {
        (value.variable, value.column): column(value.column, _ROW)
        for value in chain.from_iterable(map(operands_of, predicate.tests))
        if isinstance(value, ir.ColumnValue)
    }
    tests = [
        filter_tree(test, scope, predicate.given, builder.bindings) for test in predicate.tests
    ]
    query = exp.select(column("id", _ROW)).from_(table(relation, _ROW)).where(*tests)
    seeds = seeds_of(predicate.type, relation, predicate.tests, predicate.given)
    return Template(builder.plan(query, (_ID,)), tuple(seeds))
