"""The rules that a merged graph must keep, and what decisions make of what breaks them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.records import exclude_ids, ids_of, select_ids
from omnigraph.changes.tables import rows_of
from omnigraph.changes.wide import read_columns
from omnigraph.engine.protocol import Engine
from omnigraph.errors import LimitExceededError
from omnigraph.integrity.deltas import Delta
from omnigraph.integrity.drafts import Question
from omnigraph.integrity.evaluate import evaluate
from omnigraph.integrity.rules import RuleSet
from omnigraph.integrity.violations import Rule, Violation
from omnigraph.merge.cascades import Cascades, DeletedNode
from omnigraph.merge.conflicts import Conflict, broken
from omnigraph.merge.decisions import Merged, Survivors, with_value
from omnigraph.merge.resolutions import Choice, Decision, Given, Resolutions
from omnigraph.merge.rows import MergeRows, TouchedRows
from omnigraph.merge.source import MergeSource
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, NodeType, SchemaType
from omnigraph.storage import lookups
from omnigraph.transaction.view import View

_ROUNDS_MAX: Final = 100
"""Times that a decision about one row makes another break a rule, before people have to look."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A merge after every decision about rules.

    Attributes:
        conflicts: Undecided violations of rules; `conflict_count` says how much there is.
    """

    tables: dict[TableKey, Merged]
    conflicts: tuple[Conflict, ...] = ()
    conflict_count: int = 0


@dataclass(frozen=True, slots=True)
class Rules:
    """Keeps the rules of the target in a merge.

    Attributes:
        view: The target, with the columns of the merged schema.
        rows: The rows of the merge, which may be in other processes, too.
    """

    rule_set: RuleSet
    view: View
    engine: Engine
    resolutions: Resolutions
    rows: MergeRows
    cascades: Cascades

    @property
    def source(self) -> MergeSource:
        """What is merged, for rows that a decision takes from there."""
        return self.cascades.source

    def keep(self, tables: dict[TableKey, Merged]) -> Kept:
        """The merge, changed by decisions so that it breaks no rule; otherwise the conflicts.

        A decision about one row may break another rule, so this is repeated until nothing is
        left that anybody decided. About one offender nothing is decided twice.
        """
        tables = self.cascades.keep_all(tables)
        followed: set[tuple[object, ...]] = set()
        for _ in range(_ROUNDS_MAX):
            violations, count = self._violations(tables)
            new = [violation for violation in violations if _offence(violation) not in followed]
            if new:
                tables = self.rows.bring(tables, partial(self._touched, new))
            undecided, moved = [], False
            for violation in violations:
                offence = _offence(violation)
                after = None if offence in followed else self._followed(violation, tables)
                followed.add(offence)
                if after is None:
                    undecided.append(violation)
                else:
                    tables, moved = after, True
            if not moved:
                return Kept(tables, self._conflicts(undecided), max(count, len(undecided)))
        message = f"decisions about rules broke others {_ROUNDS_MAX} times over"
        raise LimitExceededError(message, hint="change a branch so that fewer rules are broken")

    def _conflicts(self, violations: Iterable[Violation]) -> tuple[Conflict, ...]:
        """The violations as conflicts; an edge without its node says what goes with the node."""

        def node_of(violation: Violation) -> DeletedNode | None:
            if violation.rule not in (Rule.STRANDED, Rule.ENDPOINT):
                return None
            node = self._node(self.view.catalog.type_named(violation.type_name), violation)
            by_ours = violation.rule is Rule.ENDPOINT
            return DeletedNode(node.table_key, str(violation.value), by_ours=by_ours)

        told = ((broken(each), node_of(each)) for each in violations)
        return tuple(self.cascades.tell_nodes(told))

    def _violations(self, tables: dict[TableKey, Merged]) -> tuple[list[Violation], int]:
        """What the merge breaks, as much of it as can be named, and how much there is."""
        delta = self.rows.delta(tables)
        report = evaluate(self.rule_set, delta, self.view.data, self.engine)
        if report.total == len(report.violations):
            return list(report.violations), report.total
        violations = (each for each in self._every_violation(delta) if each.breach in report.counts)
        return list(islice(violations, self.rows.conflicts_max)), report.total

    def _every_violation(self, delta: Delta) -> Iterator[Violation]:
        """Every violation, where there are more than a report shows."""
        shape, limit = delta.shape(), self.rows.conflicts_max
        for rules in self.rule_set.row_rules_for(shape):
            for rule in rules.rules:
                offenders = self._answer(rules.offenders(rule, shape).list_all(limit), delta)
                yield from map(rule.describe, offenders)
        for set_rule in self.rule_set.set_rules_for(shape):
            offenders = self._answer(set_rule.offenders(shape).list_all(limit), delta)
            yield from map(set_rule.describe, offenders)

    def _touched(self, violations: Iterable[Violation]) -> TouchedRows:
        """The rows that decisions about these would change."""
        touched = TouchedRows()
        for found in violations:
            violation = self._decided(found)
            place = (violation.type_name, violation.id, violation.properties)
            if violation.id is None or self.resolutions.decide_place(*place) is None:
                continue
            type_ = self.view.catalog.type_named(violation.type_name)
            if violation.rule is Rule.CARDINALITY:
                touched.sources.setdefault(type_.table_key, set()).add(violation.id)
                continue
            touched.ids.setdefault(type_.table_key, set()).add(violation.id)
            if violation.rule is Rule.STRANDED:
                key = self._node(type_, violation).table_key
                touched.ids.setdefault(key, set()).add(str(violation.value))
        for key, nodes in touched.sources.items():
            own = lookups.find(self.view.data.table(key), "src", nodes, columns=["id"])
            touched.ids.setdefault(key, set()).update(own["id"].to_pylist())
        return touched

    def _answer(self, question: Question, delta: Delta) -> list[dict[str, object]]:
        given = {name: rows.of(delta) for name, rows in question.given.items()}
        answer = self.engine.run(question.plan, replace(self.view.data, given=given))
        rows: list[dict[str, object]] = answer.to_pylist()
        return rows

    def _followed(
        self, violation: Violation, tables: dict[TableKey, Merged]
    ) -> dict[TableKey, Merged] | None:
        """The merge after what was decided about an offender; None if that is of no help."""
        resolutions = self.resolutions
        violation = self._decided(violation)
        place = (violation.type_name, violation.id, violation.properties)
        decision = resolutions.decide_place(*place)
        if decision is None or violation.id is None:
            return None
        offence = _Offence(violation, self.view.catalog.type_named(violation.type_name), tables)
        match violation.rule:
            case Rule.STRANDED:
                return self._stranded(offence, decision)
            case Rule.ENDPOINT:
                return self._endless(offence, decision)
            case Rule.CARDINALITY:
                return self._too_many(offence, decision)
            case _:
                pass
        if decision is Choice.OURS:
            return offence.leaving_out()
        if isinstance(decision, Given):
            return offence.giving(resolutions.given(*place), decision)
        # Theirs kept the rule as a whole; but not beside ours, where rows must differ.
        return None if violation.rule is Rule.UNIQUE else self._as_theirs(offence)

    def _decided(self, violation: Violation) -> Violation:
        """The violation as one of the row that was decided about.

        Which of two rows that break a rule together is reported depends on what else the merge
        changes, and so on other decisions.
        """
        own, rival = ((violation.type_name, id_) for id_ in (violation.id, violation.rival))
        names, properties = self.resolutions.names, violation.properties
        if rival[1] is None or names(*own, properties) or not names(*rival, properties):
            return violation
        return replace(violation, id=rival[1])

    def _stranded(self, offence: _Offence, decision: Decision) -> dict[TableKey, Merged] | None:
        """An edge of the target leads to a node that the source deleted."""
        if decision is Choice.THEIRS:
            merged = offence.merged
            row = self.source.find(merged, offence.id)
            if not row.num_rows:
                return offence.with_table(merged.deleting(offence.id))
            # Ours led it to that node, and theirs has it with another end.
            others = merged.leaving_out(offence.id)
            row = self.source.complete(merged, row, self._own_row(merged, offence.id))
            replaced = pa.concat_tables([others.replaced, row])
            return offence.with_table(replace(others, replaced=replaced))
        if decision is not Choice.OURS:
            return None
        node = self._node(offence.type, offence.violation)
        kept = {node.table_key: offence.at(node).leaving_out(offence.value)}
        retained = {node.table_key: Survivors(retained=offence.value)}
        return self.cascades.keep(offence.tables | kept, retained)

    def _endless(self, offence: _Offence, decision: Decision) -> dict[TableKey, Merged] | None:
        """An edge of the source leads to a node that the target deleted."""
        if decision is Choice.OURS:
            return offence.leaving_out()
        if decision is not Choice.THEIRS:
            return None
        node = self._node(offence.type, offence.violation)
        merged = offence.at(node)
        if pc.any(pc.is_in(merged.added["id"], value_set=offence.value)).as_py():
            # It was brought back already, for another edge that needs it.
            return offence.tables
        row = self.source.find(merged, offence.value)
        if not row.num_rows:
            # Its end is ours, and it has another in theirs.
            return self._as_theirs(offence)
        kept = {node.table_key: replace(merged, added=pa.concat_tables([merged.added, row]))}
        restored = {node.table_key: Survivors(restored=offence.value)}
        return self.cascades.keep(offence.tables | kept, restored)

    def _too_many(self, offence: _Offence, decision: Decision) -> dict[TableKey, Merged] | None:
        """A node has too many or too few edges: ours is to leave its edges as the target has."""
        if decision is not Choice.OURS:
            return None
        merged, node = offence.merged, offence.id
        table = self.view.data.table(offence.type.table_key)
        own = ids_of(lookups.find(table, "src", node, columns=["id"]))
        upserts = pa.concat_tables([merged.added, merged.replaced])
        theirs = ids_of(upserts.filter(pc.is_in(upserts["src"], value_set=node)))
        return offence.with_table(merged.leaving_out(pa.concat_arrays([own, theirs])))

    def _as_theirs(self, offence: _Offence) -> dict[TableKey, Merged] | None:
        """The whole row as the source has it."""
        merged = offence.merged
        row = self.source.find(merged, offence.id)
        if not row.num_rows or not pc.any(pc.is_in(merged.replaced["id"], offence.id)).as_py():
            return None
        others = exclude_ids(merged.replaced, offence.id)
        row = self.source.complete(merged, row, select_ids(merged.replaced, offence.id))
        return offence.with_table(replace(merged, replaced=pa.concat_tables([others, row])))

    def _own_row(self, merged: Merged, ids: pa.Array) -> pa.Table:
        """A row of the target, to be brought together with those of a merge."""
        table, schema = self.view.data.table(merged.type.table_key), table_schema(merged.type)
        if not merged.is_referring:
            found = lookups.find(table, "id", ids, columns=schema.names)
            return rows_of(merged.type, found.to_batches())
        found = lookups.find(table, "id", ids, columns=read_columns(schema))
        return merged.wide.refer(schema, table, found)

    def _node(self, edge: SchemaType, violation: Violation) -> NodeType:
        assert isinstance(edge, EdgeType), "only edges have ends"
        (end,) = violation.properties
        return self.view.catalog.node_type(edge.source if end == "src" else edge.target)


def _offence(violation: Violation) -> tuple[object, ...]:
    return (violation.breach, violation.id, str(violation.value))


@dataclass(frozen=True, slots=True)
class _Offence:
    """One offender among what a merge brings.

    Attributes:
        id: Its id, and `value` what it has, as arrays of one.
    """

    violation: Violation
    type: SchemaType
    tables: dict[TableKey, Merged]
    id: pa.Array = field(init=False)
    value: pa.Array = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", pa.array([self.violation.id], pa.utf8()))
        object.__setattr__(self, "value", pa.array([str(self.violation.value)], pa.utf8()))

    @property
    def merged(self) -> Merged:
        return self.at(self.type)

    def at(self, type_: SchemaType) -> Merged:
        merged = self.tables.get(type_.table_key)
        return Merged.nothing(type_) if merged is None else merged

    def with_table(self, merged: Merged) -> dict[TableKey, Merged]:
        return self.tables | {merged.type.table_key: merged}

    def leaving_out(self) -> dict[TableKey, Merged]:
        """The merge without the offender, which is of the source."""
        return self.with_table(self.merged.leaving_out(self.id))

    def giving(self, name: str | None, decision: Given) -> dict[TableKey, Merged] | None:
        """The merge with another value in the offender's place."""
        merged = self.merged
        if name is None:
            return None
        for part in ("added", "replaced"):
            rows = getattr(merged, part)
            place = pc.index(rows["id"], self.violation.id).as_py()
            if place >= 0:
                changed = with_value(self.type, rows, name, place, decision)
                return self.with_table(replace(merged, **{part: changed}))
        return None
