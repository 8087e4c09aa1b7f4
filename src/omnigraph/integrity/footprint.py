"""Footprints: the tables and columns that rules look at, derived from their plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from omnigraph.integrity.deltas import POSITION, DeltaRows, Part, Shape
from omnigraph.integrity.drafts import Question, Reliance
from omnigraph.integrity.evaluate import first_offenders
from omnigraph.integrity.rules import SetRule
from omnigraph.limits import COMPILED_QUERIES_MAX
from omnigraph.model.tables import TableKey
from omnigraph.relational.plans import TableRows
from omnigraph.schema.catalog import SchemaType


def reads(rules: Iterable[SetRule], shape: Shape) -> frozenset[TableKey]:
    """The tables that must not have moved since the rules were checked, before the first effect.

    Their rows are what the delta needs to be there, such as the nodes of an edge. Tables that the
    delta changes are not among them: no two writers change one table at once.
    """
    return _relied_on(rules, shape, Reliance.PRESENCE) - changed(shape)


def guards(rules: Iterable[SetRule], shape: Shape) -> frozenset[TableKey]:
    """The tables that no other writer may change before the delta is published.

    Rows that are inserted there meanwhile could break a rule that was found to hold, such as the
    edges of a node that the delta deletes.
    """
    return _relied_on(rules, shape, Reliance.ABSENCE) - changed(shape)


def columns(rules: Iterable[SetRule], type_: SchemaType, shape: Shape) -> tuple[str, ...]:
    """The columns of a type's upserted rows that the rules look at, the id first."""
    names = dict.fromkeys(["id"])
    for rule in rules:
        for rows in _delta_rows(rule, shape):
            if rows.table == type_.table_key and rows.part is Part.UPSERTS:
                names.update(dict.fromkeys(rows.columns))
    return tuple(name for name in names if name != POSITION)


def changed(shape: Shape) -> frozenset[TableKey]:
    """The tables that a delta of this shape changes."""
    return shape.upserted | shape.deleted | shape.overwritten


def _relied_on(rules: Iterable[SetRule], shape: Shape, reliance: Reliance) -> frozenset[TableKey]:
    return frozenset().union(*(_tables(rule, shape, reliance) for rule in rules))


@lru_cache(maxsize=COMPILED_QUERIES_MAX)
def _tables(rule: SetRule, shape: Shape, reliance: Reliance) -> frozenset[TableKey]:
    question = first_offenders(rule, shape)
    return frozenset(
        _committed(question, name) for name, kind in question.reliances.items() if kind is reliance
    )


def _committed(question: Question, name: str) -> TableKey:
    relation = question.plan.relations[name]
    assert isinstance(relation, TableRows), "only committed rows are relied on"
    return relation.table


def _delta_rows(rule: SetRule, shape: Shape) -> Iterator[DeltaRows]:
    yield from first_offenders(rule, shape).given.values()
