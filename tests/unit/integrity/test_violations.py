"""Reports count everything and keep little; the error that carries one travels whole."""

import json
import math
import pickle

import pytest

from omnigraph.errors import ErrorCode, OmnigraphError
from omnigraph.integrity.violations import (
    Breach,
    IntegrityError,
    IntegrityReport,
    Rule,
    Tally,
    Violation,
    require_clean,
)
from omnigraph.limits import OFFENDERS_SHOWN_MAX

ENUM = Breach(Rule.ENUM, "P", ("kind",))
PAIR = Breach(Rule.UNIQUE, "P", ("a", "b"))


def violation(breach: Breach, value: object, origin: str = "") -> Violation:
    return Violation(breach, "x", value, origin, f"{value} is wrong")


def test_a_clean_report_is_no_error():
    require_clean(IntegrityReport())


def test_everything_is_counted_and_the_first_are_kept():
    tally = Tally()
    for each in range(100):
        tally.add(violation(ENUM, each))
    tally.add(violation(PAIR, (1, 2)))
    report = tally.report()

    assert report.counts == {ENUM: 100, PAIR: 1}
    assert report.total == 101
    assert report.counts_by_rule() == {Rule.ENUM: 100, Rule.UNIQUE: 1}
    assert [each.value for each in report.violations] == [*range(OFFENDERS_SHOWN_MAX), (1, 2)]


def test_reports_add_up():
    one, both = Tally(), Tally()
    one.add(violation(ENUM, 1))
    both.add(violation(ENUM, 0))
    both.add_report(one.report())
    both.add_report(IntegrityReport())

    assert both.report().counts == {ENUM: 2}
    assert [each.value for each in both.report().violations] == [0, 1]


def test_the_error_says_how_many_and_who():
    tally = Tally()
    for each in range(5):
        tally.add(violation(ENUM, each, f"f:{each}"))
    with pytest.raises(OmnigraphError) as caught:
        require_clean(tally.report())

    error = caught.value
    assert isinstance(error, IntegrityError)
    assert error.code is ErrorCode.INTEGRITY
    assert not error.retryable
    assert error.counts == {Rule.ENUM: 5}
    assert error.message.splitlines() == [
        "the data breaks the schema: 5 violations",
        "  enum P(kind): 5",
        "    f:0: 0 is wrong",
        "    f:1: 1 is wrong",
        "    f:2: 2 is wrong",
        "    … and 2 more",
    ]


def test_the_error_travels_between_processes_whole():
    tally = Tally()
    tally.add(violation(PAIR, ("a", 1)))
    error = IntegrityError(tally.report())
    error.add_note("in partition 7")
    arrived = pickle.loads(pickle.dumps(error))

    assert str(arrived) == str(error)
    assert arrived.violations == error.violations
    assert arrived.counts == error.counts
    assert arrived.details == error.details
    assert arrived.__notes__ == ["in partition 7"]


def test_the_facts_are_json():
    tally = Tally()
    for value in (None, True, 2**64, math.nan, 0.5, ("é", 1), b"\x00"):
        tally.add(violation(ENUM, value))
    facts = json.loads(json.dumps(IntegrityError(tally.report()).details, allow_nan=False))

    values = [each["value"] for each in facts["violations"]]
    assert values == [None, True, str(2**64), "nan", 0.5, ["é", 1], "b'\\x00'"]
