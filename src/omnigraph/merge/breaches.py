"""What a merge would break: values that do not convert, rules of its rows, rules new to others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from omnigraph.engine.protocol import Data
from omnigraph.evolution.checks import RuleChecks
from omnigraph.integrity.rules import RuleSet
from omnigraph.integrity.violations import Violation
from omnigraph.merge.cascades import Cascades
from omnigraph.merge.conflicts import Conflict, ConflictKind, broken
from omnigraph.merge.decisions import Merged
from omnigraph.merge.lost_values import lost_values, partial_conversions
from omnigraph.merge.resolutions import Resolutions
from omnigraph.merge.rows import MergeRows, RowMerger
from omnigraph.merge.rules import Kept, Rules
from omnigraph.merge.targets import MergeTarget
from omnigraph.merge.versions import TableVersions
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.model.tables import TableKey
from omnigraph.schema.change_codes import ChangeCode
from omnigraph.schema.schema_facts import Facet
from omnigraph.schema.steps import SchemaStep
from omnigraph.storage import heads
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View

_FACETS = {
    ChangeCode.KEY_CHANGE: Facet.KEY,
    ChangeCode.KEY_TYPE_CHANGE: Facet.TYPE,
    ChangeCode.ENDS_CHANGE: Facet.ENDS,
}


@dataclass(frozen=True, slots=True)
class MergeChecks:
    """Checks what a merge makes of the target, before anything is written to it.

    Attributes:
        target: The target under the merged schema; None if both sides have that schema.
        rows: The rows of the merge, which may be in other processes, too.
    """

    versions: TableVersions
    target: MergeTarget | None
    view: View
    merger: RowMerger
    resolutions: Resolutions
    rule_set: RuleSet
    rows: MergeRows
    cascades: Cascades

    def run(self, tables: dict[TableKey, Merged]) -> Kept:
        """The merge, changed by decisions so that it breaks no rule; otherwise the conflicts."""
        target = self.target
        view = self.view if target is None else target.merged_view
        lost = list(self._lost_values(tables))
        rules = Rules(self.rule_set, view, self.merger, self.resolutions, self.rows, self.cascades)
        kept = rules.keep(tables)
        conflicts, count = [*lost, *kept.conflicts], len(lost) + kept.conflict_count
        if target is not None:
            refusals = [_refusal(step) for step in target.refusals]
            conflicts, count = [*conflicts, *refusals], count + len(refusals)
            if not refusals:
                found = self._new_rules(target, kept.tables)
                known = set(map(_place, conflicts))
                new = [conflict for conflict in found.conflicts if _place(conflict) not in known]
                conflicts += new
                count += found.conflict_count - (len(found.conflicts) - len(new))
        return replace(kept, conflicts=tuple(conflicts), conflict_count=count)

    def _lost_values(self, tables: dict[TableKey, Merged]) -> Iterator[Conflict]:
        if self.target is None:
            return
        for type_ in self.versions.schema.catalog.types:
            sides = self.versions.sides(type_)
            if any(partial_conversions(lift) for lift in sides.lifts.values()):
                merged = tables.get(type_.table_key) or Merged.nothing(type_)
                yield from lost_values(sides, merged, self._branches)

    @property
    def _branches(self) -> dict[CommitId, BranchName]:
        """The names of the sides."""
        snapshots = (self.versions.ours.snapshot, self.versions.theirs.snapshot)
        return {snapshot.head.commit_id: snapshot.branch for snapshot in snapshots}

    def _new_rules(self, target: MergeTarget, tables: dict[TableKey, Merged]) -> Kept:
        """Check rules that are new to the target on all of its rows, as the merge leaves them.

        Rows of the target were not checked against rules that only the source has.
        """
        catalog = target.schema.catalog
        checks = RuleChecks(catalog, target.checks(), lambda _name: self.merger, None)
        if not checks.checks:
            return Kept(tables)

        @cache
        def open_table(key: TableKey) -> Table:
            merged = tables.get(key)
            if merged is None or not self.rows.counts(merged):
                return target.table(key)
            old_key = target.old_key(key)
            if old_key is None:
                staged = self.rows.stage(merged, target.table(key))
            else:
                staged = self.rows.stage(merged, self.view.data.table(old_key), target.shown(key))
            return heads.preview(staged)

        report = checks.run(Data(open_table))
        conflicts = tuple(map(self._broken_by_ours, report.violations))
        return Kept(tables, conflicts, report.total)

    def _broken_by_ours(self, violation: Violation) -> Conflict:
        """A rule of the source that a row of the target breaks; no decision changes that row."""
        ours, theirs = self.versions.ours.snapshot.branch, self.versions.theirs.snapshot.branch
        conflict = broken(violation)
        way = (
            f"no decision changes it: change the row on branch {ours}, or the rule on branch "
            f"{theirs}, and merge again"
        )
        return replace(conflict, message=f"{conflict.message}; {way}")


def _place(conflict: Conflict) -> tuple[str | None, ...]:
    return conflict.kind, conflict.type_name, conflict.id, conflict.property


def _refusal(step: SchemaStep) -> Conflict:
    """A step that the source could take, since it had no rows, and the target cannot."""
    assert step.refusal is not None, "that is why it is refused"
    message = f"{step.refusal.reason} in ours: {step.refusal.way}"
    return Conflict(
        ConflictKind.SCHEMA,
        step.type_name,
        None,
        step.property_name,
        ours=step.before,
        theirs=step.after,
        message=message,
        facet=str(_FACETS.get(step.refusal.code, Facet.VALIDITY)),
    )
