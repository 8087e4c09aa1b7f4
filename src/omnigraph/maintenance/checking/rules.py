"""Checks of rows: every row is read and checked against the rules that writers keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from omnigraph.choices import EngineName
from omnigraph.engine.choose import by_size, measure_plan
from omnigraph.engine.protocol import Data, Engines
from omnigraph.errors import OmnigraphError
from omnigraph.integrity.committed import check_rows, check_tables, set_rules, tables_of
from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import RuleSet, SetRule
from omnigraph.integrity.violations import IntegrityReport, Tally
from omnigraph.maintenance.checking.report import Finding, Invariant, Notebook
from omnigraph.maintenance.checking.tables import format_place
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.tables import TableKey
from omnigraph.relational.plans import Plan
from omnigraph.storage.scans import scan_batches
from omnigraph.storage.tables import Table, TableAddress

_BATCH_BYTES: Final = 64 << 20
"""About how much of a table is held in memory at a time."""

_NAMED_MAX: Final = 3
"""Offenders that a finding names; it counts all of them."""

Progress = Callable[[str, int, int | None], None]
"""Called with the name of a stage, how much of it is done, and its total."""


@dataclass(slots=True)
class RowChecks:
    """Checks rows of several branches; tables that they share are read once.

    Attributes:
        engine: `local`, `spark` or `auto`, for the rules about several rows.
    """

    notebook: Notebook
    engines: Engines
    engine: str | None
    progress: Progress | None
    _unreadable: set[TableAddress] = field(default_factory=set)
    _asked: set[object] = field(default_factory=set)

    def run(self, snapshot: Snapshot, rule_set: RuleSet, tables: dict[TableKey, Table]) -> None:
        """Check every row of a branch in the given tables.

        Args:
            tables: The pinned versions that have the columns of their types.
        """
        data = Data(tables.__getitem__)
        alone = [rules for rules in rule_set.row_rules if rules.type.table_key in tables]
        for done, rules in enumerate(alone):
            self._report_progress("rows", done, len(alone))
            self._check_rows(rules, rule_set, tables[rules.type.table_key], data)
        together = list(set_rules(rule_set))
        for done, rule in enumerate(together):
            self._report_progress("rules", done, len(together))
            self._check_rule(rule, rule_set, snapshot, tables, data)

    def _check_rows(self, rules: RowRules, rule_set: RuleSet, table: Table, data: Data) -> None:
        asked = (rules.type, table.address)
        if asked in self._asked:
            return
        self._asked.add(asked)
        subject, place = str(rules.type.table_key), format_place(table.address)
        local = self.engines(EngineName.LOCAL)
        tally = Tally()
        try:
            fragments = range(len(table.fragments()))
            names = table.schema.names
            for batch in scan_batches(table, names, fragments=fragments, batch_bytes=_BATCH_BYTES):
                self.notebook.count(Invariant.ROW, batch.num_rows)
                rows = pa.Table.from_batches([batch])
                tally.add_report(check_rows(rules, rule_set.catalog, rows, data, local))
        except OmnigraphError as failure:
            what = "its rows cannot be read"
            self.notebook.fail(Invariant.TABLE, subject, place, failure, what=what)
            self._unreadable.add(table.address)
        self._report(Invariant.ROW, tally.report(), place)

    def _check_rule(
        self,
        rule: SetRule,
        rule_set: RuleSet,
        snapshot: Snapshot,
        tables: dict[TableKey, Table],
        data: Data,
    ) -> None:
        keys = tables_of(rule, rule_set.catalog)
        if not tables.keys() >= set(keys):
            return
        addresses = tuple(tables[key].address for key in keys)
        asked = (rule, addresses)
        if asked in self._asked or not self._unreadable.isdisjoint(addresses):
            return
        self._asked.add(asked)
        self.notebook.count(Invariant.RULE)
        place = f"branch {snapshot.branch}"

        def run(plan: Plan) -> pa.Table:
            choice = by_size(self.engine, measure_plan(plan, data))
            return self.engines(choice.engine).run(plan, data)

        try:
            report = check_tables(rule, rule_set.catalog, run)
        except OmnigraphError as failure:
            self.notebook.fail(Invariant.RULE, str(rule.breach), place, failure)
        else:
            self._report(Invariant.RULE, report, place)

    def _report(self, invariant: Invariant, report: IntegrityReport, place: str) -> None:
        for breach, count in report.counts.items():
            violations = (each for each in report.violations if each.breach == breach)
            messages = [violation.message for violation in violations]
            more = f"; and {count - _NAMED_MAX:,} more" if count > _NAMED_MAX else ""
            problem = f"{'; '.join(messages[:_NAMED_MAX])}{more}"
            step = "write the rows anew as the schema wants them, and report how this came about"
            self.notebook.find(Finding(invariant, str(breach), place, problem, step, count))

    def _report_progress(self, stage: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, total)
