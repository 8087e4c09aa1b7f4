"""Evaluating a rule set: which rules a delta breaks, how often, and who is first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from omnigraph.engine.protocol import Data, Engine
from omnigraph.integrity.deltas import Delta, Shape
from omnigraph.integrity.drafts import Question
from omnigraph.integrity.proofs.proof import Proof, nothing
from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import RuleSet, SetRule
from omnigraph.integrity.violations import Report, Tally, ToOrigin, no_origin
from omnigraph.limits import COMPILED_QUERIES_MAX, OFFENDERS_SHOWN_MAX


def evaluate(
    rule_set: RuleSet,
    delta: Delta,
    data: Data,
    engine: Engine,
    *,
    is_proven: Proof = nothing,
    to_origin: ToOrigin = no_origin,
) -> Report:
    """What the graph would break if it had the delta; the same report on every engine.

    The committed tables are taken to be right. Of a delta without violations each table is read
    once for its row rules, and each other rule that the delta could break is one plan; a broken
    row rule costs one more, and another broken one at most one more. At most
    `OFFENDERS_SHOWN_MAX` offenders of a rule are ever held.

    Args:
        is_proven: Shows rules that the delta keeps; no engine is run for them.
        to_origin: How to name the rows that break rules.

    Raises:
        StorageError: a table could not be read.
    """
    asked = _Asked(delta, delta.shape(), data, engine, to_origin)
    tally = Tally()
    for rules in rule_set.row_rules_for(asked.shape):
        if not is_proven(rules):
            _check_rows(rules, asked, tally)
    for rule in rule_set.set_rules_for(asked.shape):
        if not is_proven(rule):
            tally.add_report(check_set(rule, asked.shape, asked.answer, to_origin))
    return tally.report()


def check_set(
    rule: SetRule,
    shape: Shape,
    answer: Callable[[Question], pa.Table],
    to_origin: ToOrigin = no_origin,
) -> Report:
    """The offenders of one rule about rows together, as whoever has the rows answers for them."""
    first = answer(first_offenders(rule, shape))
    count = first.num_rows
    if count == OFFENDERS_SHOWN_MAX:
        count = answer(rule.offenders(shape).count())["count"][0].as_py()
    tally = Tally()
    described = (rule.described(row, to_origin) for row in first.to_pylist())
    tally.add_counted(rule.breach, count, described)
    return tally.report()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What stays the same while a delta is checked."""

    delta: Delta
    shape: Shape
    data: Data
    engine: Engine
    to_origin: ToOrigin

    def answer(self, question: Question) -> pa.Table:
        given = {name: rows.of(self.delta) for name, rows in question.given.items()}
        return self.engine.run(question.plan, replace(self.data, given=given))


def _check_rows(rules: RowRules, asked: _Asked, tally: Tally) -> None:
    [counts] = asked.answer(_counts(rules, asked.shape)).to_pylist()
    for rule, count in zip(rules.rules, counts.values(), strict=True):
        if count:
            first = asked.answer(rules.offenders(rule, asked.shape).first())
            described = (rule.described(row, asked.to_origin) for row in first.to_pylist())
            tally.add_counted(rule.breach, count, described)


@lru_cache(maxsize=COMPILED_QUERIES_MAX)
def _counts(rules: RowRules, shape: Shape) -> Question:
    return rules.counts(shape)


@lru_cache(maxsize=COMPILED_QUERIES_MAX)
def first_offenders(rule: SetRule, shape: Shape) -> Question:
    """The question for a rule's first offenders, made once."""
    return rule.offenders(shape).first()
