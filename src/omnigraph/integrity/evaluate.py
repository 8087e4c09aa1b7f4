"""Evaluating a rule set: which rules a delta breaks, how often, and the first offenders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from omnigraph.engine.protocol import Data, Engine
from omnigraph.integrity.deltas import Delta, Shape
from omnigraph.integrity.drafts import Question
from omnigraph.integrity.proofs.proof import Proof, no_proof
from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import RuleSet, SetRule
from omnigraph.integrity.violations import IntegrityReport, Tally, ToOrigin, no_origin
from omnigraph.limits import COMPILED_QUERIES_MAX, OFFENDERS_SHOWN_MAX


def evaluate(
    rule_set: RuleSet,
    delta: Delta,
    data: Data,
    engine: Engine,
    *,
    is_proven: Proof = no_proof,
    to_origin: ToOrigin = no_origin,
) -> IntegrityReport:
    """Report the rules that the graph with the delta would break; the same on every engine.

    The committed tables are assumed valid. For a delta without violations each table is read
    once for its row rules, and each other rule that the delta could break is one plan; a broken
    row rule costs one more plan, and a broken rule of another kind at most one more. At most
    `OFFENDERS_SHOWN_MAX` offenders of a rule are held in memory.

    Args:
        is_proven: Proves rules that the delta keeps; the engine skips them.
        to_origin: How to name the rows that break rules.
    """
    check = _DeltaCheck(delta, delta.shape(), data, engine, to_origin)
    tally = Tally()
    for rules in rule_set.row_rules_for(check.shape):
        if not is_proven(rules):
            tally.add_report(check_row_rules(rules, check.shape, check.answer, to_origin))
    for rule in rule_set.set_rules_for(check.shape):
        if not is_proven(rule):
            tally.add_report(check_set(rule, check.shape, check.answer, to_origin))
    return tally.report()


def check_set(
    rule: SetRule,
    shape: Shape,
    answer: Callable[[Question], pa.Table],
    to_origin: ToOrigin = no_origin,
) -> IntegrityReport:
    """Report the offenders of one set rule; `answer` runs its plans where the rows are."""
    first = answer(first_offenders(rule, shape))
    count = first.num_rows
    if count == OFFENDERS_SHOWN_MAX:
        count = answer(rule.offenders(shape).count())["count"][0].as_py()
    tally = Tally()
    violations = (rule.describe(row, to_origin) for row in first.to_pylist())
    tally.add_offenders(rule.breach, count, violations)
    return tally.report()


def check_row_rules(
    rules: RowRules,
    shape: Shape,
    answer: Callable[[Question], pa.Table],
    to_origin: ToOrigin = no_origin,
) -> IntegrityReport:
    """Report the offenders of the row rules of one type; `answer` runs plans where the rows are."""
    [counts] = answer(_counts(rules, shape)).to_pylist()
    tally = Tally()
    for rule, count in zip(rules.rules, counts.values(), strict=True):
        if count:
            first = answer(rules.offenders(rule, shape).first())
            violations = (rule.describe(row, to_origin) for row in first.to_pylist())
            tally.add_offenders(rule.breach, count, violations)
    return tally.report()


@dataclass(frozen=True, slots=True)
class _DeltaCheck:
    """The constant inputs of one check."""

    delta: Delta
    shape: Shape
    data: Data
    engine: Engine
    to_origin: ToOrigin

    def answer(self, question: Question) -> pa.Table:
        given = {name: rows.of(self.delta) for name, rows in question.given.items()}
        return self.engine.run(question.plan, replace(self.data, given=given))


@lru_cache(maxsize=COMPILED_QUERIES_MAX)
def _counts(rules: RowRules, shape: Shape) -> Question:
    return rules.counts(shape)


@lru_cache(maxsize=COMPILED_QUERIES_MAX)
def first_offenders(rule: SetRule, shape: Shape) -> Question:
    """The question for a rule's first offenders; cached."""
    return rule.offenders(shape).first()
