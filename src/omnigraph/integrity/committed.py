"""Rules over committed rows: every rule's own plan, reading tables in the place of a delta.

A write that replaced every row by itself would have to keep every rule, and would rely on no other
committed rows. So the plans are those for that delta, and each of its relations is the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from omnigraph.engine.protocol import Data, Engine
from omnigraph.integrity import evaluate
from omnigraph.integrity.deltas import POSITION, Delta, DeltaPart, DeltaRows, Shape, TableDelta
from omnigraph.integrity.drafts import Question, no_position
from omnigraph.integrity.evaluate import check_set, first_offenders
from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import RuleSet, SetRule
from omnigraph.integrity.uniques import Unique
from omnigraph.integrity.violations import IntegrityReport
from omnigraph.model.tables import TableKey
from omnigraph.relational.plans import Plan, Relation, TableRows
from omnigraph.schema.catalog import Catalog


def set_rules(rule_set: RuleSet) -> Iterator[SetRule]:
    """Every set rule that committed rows can break.

    Writers compare ids, which are made from keys. Unchecked rows may have other ids, so here keys
    are compared, too.
    """
    yield from rule_set.set_rules_for(_overwrite_all(rule_set.catalog))
    for type_ in rule_set.catalog.types:
        if type_.key and type_.key not in type_.uniques:
            yield Unique(type_, type_.key)


def tables_of(rule: SetRule, catalog: Catalog) -> tuple[TableKey, ...]:
    """The tables that a rule reads, sorted."""
    given = first_offenders(rule, _overwrite_all(catalog)).given
    return tuple(sorted({rows.table for rows in given.values()}))


def check_tables(
    rule: SetRule, catalog: Catalog, run: Callable[[Plan], pa.Table]
) -> IntegrityReport:
    """Report the committed rows that break a set rule.

    Args:
        run: Runs a plan on the tables of one commit.
    """
    return check_set(rule, _overwrite_all(catalog), lambda question: run(_over_tables(question)))


def check_table_rows(
    rules: RowRules, catalog: Catalog, run: Callable[[Plan], pa.Table]
) -> IntegrityReport:
    """Report the committed rows of a type that break its row rules; the table is read once.

    Args:
        run: Runs a plan on the tables of one commit.
    """
    return evaluate.check_row_rules(
        rules, _overwrite_all(catalog), lambda question: run(_over_tables(question))
    )


def check_rows(
    rules: RowRules, catalog: Catalog, rows: pa.Table, data: Data, engine: Engine
) -> IntegrityReport:
    """Report which of a few committed rows of a type break a row rule."""
    positions = pa.nulls(len(rows), pa.int64())
    table_delta = TableDelta(rows.append_column(POSITION, positions), overwrites=True)
    rule_set = RuleSet(catalog, row_rules=(rules,), set_rules=())
    return evaluate.evaluate(rule_set, Delta({rules.type.table_key: table_delta}), data, engine)


def _over_tables(question: Question) -> Plan:
    """A question's plan with every relation of its delta read from the table itself."""
    plan = question.plan
    relations: dict[str, Relation] = dict(plan.relations)
    for name, rows in question.given.items():
        relations[name] = _table_rows(rows)
    tree = plan.tree.transform(_without_position)
    assert isinstance(tree, exp.Query), "only columns were replaced"
    return replace(plan, tree=tree, relations=relations, reductions=())


def _table_rows(rows: DeltaRows) -> TableRows:
    assert rows.part is DeltaPart.UPSERTS, "a delta that replaces everything deletes nothing by id"
    return TableRows(rows.table, tuple(name for name in rows.columns if name != POSITION))


def _without_position(node: exp.Expr) -> exp.Expr:
    """Committed rows have no position in an input."""
    is_position = isinstance(node, exp.Column) and node.name == POSITION
    return no_position() if is_position else node


def _overwrite_all(catalog: Catalog) -> Shape:
    keys = frozenset(type_.table_key for type_ in catalog.types)
    return Shape(upserted=keys, overwritten=keys)
