"""Checks of a schema change: the rules that it adds or tightens, on the rows as they will be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from omnigraph.engine.choose import by_size, measure_plan
from omnigraph.engine.protocol import Data, Engines
from omnigraph.evolution.keys import check_kept_ids
from omnigraph.integrity.committed import check_table_rows, check_tables, tables_of
from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import RuleSet, SetRule
from omnigraph.integrity.violations import Breach, IntegrityError, IntegrityReport, Rule, Tally
from omnigraph.model.tables import TableKey
from omnigraph.relational.plans import Plan
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.steps import RuleCheck, RuleWord
from omnigraph.storage.scans import scan_batches

_BATCH_BYTES: Final = 64 << 20
"""About how much of a table is held in memory at a time."""

_RULES: Final = {
    RuleWord.REQUIRED: Rule.REQUIRED,
    RuleWord.TYPE: Rule.TYPE,
    RuleWord.ENUM: Rule.ENUM,
    RuleWord.RANGE: Rule.RANGE,
    RuleWord.CHECK: Rule.CHECK,
    RuleWord.LENGTH: Rule.LENGTH,
    RuleWord.UNIQUE: Rule.UNIQUE,
    RuleWord.CARDINALITY: Rule.CARDINALITY,
}
"""Every word but `key`, which is not a rule about a delta: writers make ids from keys."""


def require_kept(report: IntegrityReport) -> None:
    """Refuse a schema change that rows of the graph do not obey."""
    if not report.is_clean:
        hint = "fix the rows, or the new schema, and apply it again; nothing was changed"
        raise IntegrityError(report, hint=hint)


class RowFaults:
    """Collects what is wrong with rows, so that a refusal lists all of it.

    Attributes:
        types: By their names in the old schema, the types whose rows lack values.
    """

    def __init__(self) -> None:
        self._tally = Tally()
        self.types: set[str] = set()

    def add(self, report: IntegrityReport, *types: str) -> None:
        """Add violations, and the types whose rows lack values because of them."""
        self._tally.add_report(report)
        self.types.update(types)

    def report(self) -> IntegrityReport:
        """Everything that was added."""
        return self._tally.report()


@dataclass(frozen=True, slots=True)
class RuleChecks:
    """Checks some rules of a new schema.

    Attributes:
        catalog: The new schema.
        engine: `local`, `spark` or `auto`.
    """

    catalog: Catalog
    checks: tuple[RuleCheck, ...]
    engines: Engines
    engine: str | None

    def run(self, data: Data) -> IntegrityReport:
        """Report the rows that break the rules, on either engine, by the size of the tables.

        Args:
            data: Opens the table of each type with the columns that it will have. A column whose
                nulls are counted must be nullable there: engines do not look for nulls elsewhere.
        """
        rule_set = RuleSet.compile(self.catalog)
        breaches = frozenset(self._breaches())
        tally = Tally()

        def run(plan: Plan) -> pa.Table:
            choice = by_size(self.engine, measure_plan(plan, data))
            return self.engines(choice.engine).run(plan, data)

        for rules in _row_rules(rule_set.row_rules, breaches):
            tally.add_report(check_table_rows(rules, self.catalog, run))
        for rule in _set_rules(rule_set.set_rules, breaches):
            tally.add_report(check_tables(rule, self.catalog, run))
        for check in self.checks:
            if check.rule is RuleWord.KEY:
                tally.add_report(self._check_key(check, data))
        return tally.report()

    def without(self, keys: Collection[TableKey]) -> RuleChecks:
        """The checks of other types than these."""
        return replace(
            self, checks=tuple(check for check in self.checks if check.table not in keys)
        )

    def tables(self) -> frozenset[TableKey]:
        """The tables that the checks read."""
        rule_set, breaches = RuleSet.compile(self.catalog), frozenset(self._breaches())
        keys = {check.table for check in self.checks}
        for rule in _set_rules(rule_set.set_rules, breaches):
            keys.update(tables_of(rule, self.catalog))
        return frozenset(keys)

    def _breaches(self) -> Iterator[Breach]:
        for check in self.checks:
            if check.rule is not RuleWord.KEY:
                type_name = self.catalog.type_of(check.table).name
                yield Breach(_RULES[check.rule], type_name, check.properties)

    def _check_key(self, check: RuleCheck, data: Data) -> IntegrityReport:
        """Whether every id is what the new key makes of its row; a batch at a time."""
        type_, table = self.catalog.type_of(check.table), data.table(check.table)
        columns = ["id", *type_.key]
        tally = Tally()
        fragments = range(len(table.fragments()))
        for batch in scan_batches(table, columns, fragments=fragments, batch_bytes=_BATCH_BYTES):
            tally.add_report(check_kept_ids(type_, batch))
        return tally.report()


def _row_rules(every: Iterable[RowRules], breaches: frozenset[Breach]) -> Iterator[RowRules]:
    for rules in every:
        wanted = tuple(rule for rule in rules.rules if rule.breach in breaches)
        if wanted:
            yield replace(rules, rules=wanted)


def _set_rules(every: Iterable[SetRule], breaches: frozenset[Breach]) -> Iterator[SetRule]:
    return (rule for rule in every if rule.breach in breaches)
