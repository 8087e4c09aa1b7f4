"""Footprints: the tables and columns that rules read, derived from their plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from omnigraph.integrity.deltas import POSITION, DeltaPart, DeltaRows, Shape
from omnigraph.integrity.drafts import Question, Reliance
from omnigraph.integrity.evaluate import first_offenders
from omnigraph.integrity.rules import SetRule
from omnigraph.limits import COMPILED_QUERIES_MAX
from omnigraph.model.tables import TableKey
from omnigraph.relational.plans import TableRows
from omnigraph.schema.catalog import SchemaType


def reads(rules: Iterable[SetRule], shape: Shape) -> frozenset[TableKey]:
    """The tables that must be unchanged since the rules were checked, before the first effect.

    The delta requires rows of theirs, such as the nodes of an edge. Tables that the delta changes
    are not among them: no two writers change one table at once.
    """
    return _tables_relied_on(rules, shape, Reliance.PRESENCE) - changed_tables(shape)


def guards(rules: Iterable[SetRule], shape: Shape) -> frozenset[TableKey]:
    """The tables that no other writer may change before the delta is published.

    Rows that are inserted there meanwhile could break a rule that held when it was checked, such
    as the edges of a node that the delta deletes.
    """
    return _tables_relied_on(rules, shape, Reliance.ABSENCE) - changed_tables(shape)


def columns(rules: Iterable[SetRule], type_: SchemaType, shape: Shape) -> tuple[str, ...]:
    """The columns of a type's upserted rows that the rules read, the id first."""
    names = dict.fromkeys(["id"])
    for rule in rules:
        for rows in _delta_rows(rule, shape):
            if rows.table == type_.table_key and rows.part is DeltaPart.UPSERTS:
                names.update(dict.fromkeys(rows.columns))
    return tuple(name for name in names if name != POSITION)


def changed_tables(shape: Shape) -> frozenset[TableKey]:
    """The tables that a delta of this shape changes."""
    return shape.upserted | shape.deleted | shape.overwritten


def _tables_relied_on(
    rules: Iterable[SetRule], shape: Shape, reliance: Reliance
) -> frozenset[TableKey]:
    return frozenset().union(*(_tables(rule, shape, reliance) for rule in rules))


@lru_cache(maxsize=COMPILED_QUERIES_MAX)
def _tables(rule: SetRule, shape: Shape, reliance: Reliance) -> frozenset[TableKey]:
    question = first_offenders(rule, shape)
    return frozenset(
        _committed_table(question, name)
        for name, kind in question.reliances.items()
        if kind is reliance
    )


def _committed_table(question: Question, name: str) -> TableKey:
    relation = question.plan.relations[name]
    assert isinstance(relation, TableRows), "only committed rows are relied on"
    return relation.table


def _delta_rows(rule: SetRule, shape: Shape) -> Iterator[DeltaRows]:
    yield from first_offenders(rule, shape).given.values()
