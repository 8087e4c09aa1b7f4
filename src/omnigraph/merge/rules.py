"""The rules that a merged graph must keep, and what decisions make of what breaks them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.graphs import Side
from omnigraph.changes.records import excluding, ids_of
from omnigraph.engine.protocol import Engine
from omnigraph.integrity.deltas import ORIGIN, Delta, TableDelta, delta_schema
from omnigraph.integrity.drafts import Question
from omnigraph.integrity.evaluate import evaluate
from omnigraph.integrity.rules import RuleSet
from omnigraph.integrity.violations import Rule, Violation
from omnigraph.merge.conflicts import Conflict, broken
from omnigraph.merge.decisions import Merged, with_value
from omnigraph.merge.resolutions import Choice, Decision, Given, Resolutions
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, NodeType, SchemaType
from omnigraph.storage import lookups
from omnigraph.storage.tables import Table
from omnigraph.transaction.work import View

_ROUNDS_MAX: Final = 100
"""Times that a decision about one row makes another break a rule, before people have to look."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Keeps the rules of the target while a merge comes in.

    Attributes:
        source: What is merged, for rows that a decision takes from there.
    """

    rule_set: RuleSet
    source: Side
    view: View
    engine: Engine
    resolutions: Resolutions

    def keep(
        self, tables: dict[TableKey, Merged]
    ) -> tuple[dict[TableKey, Merged], tuple[Conflict, ...]]:
        """The merge, changed where that was decided so that it breaks no rule; else the conflicts.

        A decision about one row may break another rule, so it goes on until nothing is left that
        anybody decided. About one offender nothing is decided twice.
        """
        followed: set[tuple[object, ...]] = set()
        for _ in range(_ROUNDS_MAX):
            conflicts, moved = [], False
            for violation in self._broken(tables):
                offence = (violation.breach, violation.id, str(violation.value))
                after = None if offence in followed else self._followed(violation, tables)
                followed.add(offence)
                if after is None:
                    conflicts.append(broken(violation))
                else:
                    tables, moved = after, True
            if not moved:
                break
        return tables, tuple(conflicts)

    def _broken(self, tables: dict[TableKey, Merged]) -> list[Violation]:
        changed = {key: _delta(each) for key, each in tables.items() if each.counts}
        delta = Delta(changed)
        report = evaluate(self.rule_set, delta, self.view.data, self.engine)
        if report.total == len(report.violations):
            return list(report.violations)
        return [each for each in self._listed(delta) if each.breach in report.counts]

    def _listed(self, delta: Delta) -> Iterator[Violation]:
        """Every violation, where there are more than a report shows."""
        shape = delta.shape()
        for rules in self.rule_set.row_rules_for(shape):
            for rule in rules.rules:
                found = self._answer(rules.offenders(rule, shape).listed(), delta)
                yield from map(rule.described, found)
        for set_rule in self.rule_set.set_rules_for(shape):
            found = self._answer(set_rule.offenders(shape).listed(), delta)
            yield from map(set_rule.described, found)

    def _answer(self, question: Question, delta: Delta) -> list[dict[str, object]]:
        given = {name: rows.of(delta) for name, rows in question.given.items()}
        answer = self.engine.run(question.plan, replace(self.view.data, given=given))
        found: list[dict[str, object]] = answer.to_pylist()
        return found

    def _followed(
        self, violation: Violation, tables: dict[TableKey, Merged]
    ) -> dict[TableKey, Merged] | None:
        """The merge after what was decided about an offender; None if that is of no help."""
        resolutions = self.resolutions
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

    def _stranded(self, offence: _Offence, decision: Decision) -> dict[TableKey, Merged] | None:
        """An edge of the target leads to a node that goes with the source."""
        if decision is Choice.THEIRS:
            return offence.with_table(offence.merged.deleting(offence.id))
        if decision is not Choice.OURS:
            return None
        node = self._node(offence)
        return offence.tables | {node.table_key: offence.at(node).leaving_out(offence.value)}

    def _endless(self, offence: _Offence, decision: Decision) -> dict[TableKey, Merged] | None:
        """An edge of the source leads to a node that the target deleted."""
        if decision is Choice.OURS:
            return offence.leaving_out()
        if decision is not Choice.THEIRS:
            return None
        node = self._node(offence)
        row = _rows(node, self.source.data.table(node.table_key), offence.value)
        if not row.num_rows:
            return None
        merged = offence.at(node)
        added = pa.concat_tables([merged.added, row])
        return offence.tables | {node.table_key: replace(merged, added=added)}

    def _too_many(self, offence: _Offence, decision: Decision) -> dict[TableKey, Merged] | None:
        """A node has too many or too few edges: ours is to leave its edges as the target has."""
        if decision is not Choice.OURS:
            return None
        merged, node = offence.merged, offence.id
        table = self.view.data.table(offence.type.table_key)
        own = ids_of(lookups.find(table, "src", node, columns=["id"]))
        come = pa.concat_tables([merged.added, merged.replaced])
        theirs = ids_of(come.filter(pc.is_in(come["src"], value_set=node)))
        return offence.with_table(merged.leaving_out(pa.concat_arrays([own, theirs])))

    def _as_theirs(self, offence: _Offence) -> dict[TableKey, Merged] | None:
        """The whole row as the source has it."""
        type_, merged = offence.type, offence.merged
        row = _rows(type_, self.source.data.table(type_.table_key), offence.id)
        if not row.num_rows or not pc.any(pc.is_in(merged.replaced["id"], offence.id)).as_py():
            return None
        others = excluding(merged.replaced, offence.id)
        return offence.with_table(replace(merged, replaced=pa.concat_tables([others, row])))

    def _node(self, offence: _Offence) -> NodeType:
        edge = offence.type
        assert isinstance(edge, EdgeType), "only edges have ends"
        (end,) = offence.violation.properties
        return self.view.catalog.node_type(edge.source if end == "src" else edge.target)


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
        found = self.tables.get(type_.table_key)
        return Merged.nothing(type_) if found is None else found

    def with_table(self, merged: Merged) -> dict[TableKey, Merged]:
        return self.tables | {merged.type.table_key: merged}

    def leaving_out(self) -> dict[TableKey, Merged]:
        """The merge without the offender, which came with the source."""
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


def _rows(type_: SchemaType, table: Table, ids: pa.Array) -> pa.Table:
    schema = table_schema(type_)
    found = lookups.find(table, "id", ids, columns=schema.names)
    columns = [found[each.name].cast(each.type) for each in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _delta(merged: Merged) -> TableDelta:
    schema = delta_schema(merged.type)
    rows = pa.concat_tables([merged.replaced, merged.added])
    origin = pa.nulls(rows.num_rows, pa.utf8())
    columns = [
        origin if each.name == ORIGIN else rows[each.name].cast(each.type) for each in schema
    ]
    return TableDelta(pa.Table.from_arrays(columns, schema=schema), merged.deleted)
