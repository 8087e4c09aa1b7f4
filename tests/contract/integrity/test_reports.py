"""What a report keeps: exact counts, the first offenders, in one order on every engine."""

import pytest

from omnigraph.integrity.violations import Breach, IntegrityError, Rule, require_clean
from omnigraph.limits import OFFENDERS_SHOWN_MAX
from omnigraph.schema.parser import parse_schema
from tests.contract.integrity.builders import POSITION, put

CATALOG = parse_schema("node P { n: I64?  @range(n, 0..9) } edge K: P -> P")


def test_many_offenders_are_counted_and_the_first_are_kept_in_the_order_of_lines(place):
    lines = range(1, 51)
    rows = [{"id": f"{line:>9}", "n": 10, POSITION: line} for line in reversed(lines)]
    edges = [{"id": f"{line}", "src": "x", "dst": rows[0]["id"], POSITION: line} for line in lines]
    report = place.check(CATALOG, {}, put(P=rows, K=edges))

    assert report.counts == {
        Breach(Rule.RANGE, "P", ("n",)): 50,
        Breach(Rule.ENDPOINT, "K", ("src",)): 50,
    }
    shown = [f"f:{line}" for line in lines[:OFFENDERS_SHOWN_MAX]]
    assert [each.origin for each in report.violations] == [*shown, *shown]


def test_offenders_without_an_origin_are_in_the_order_of_their_ids(place):
    rows = [{"id": each, "n": -1} for each in ("é", "b", "a", "B", "😀", "\uffff")]
    report = place.check(CATALOG, {}, put(P=rows))

    # By code points, not as anybody's language would have it.
    assert [each.id for each in report.violations] == ["B", "a", "b", "é", "\uffff", "😀"]


def test_exactly_as_many_as_are_kept_are_counted_right(place):
    rows = [{"id": str(each), "n": -1} for each in range(OFFENDERS_SHOWN_MAX)]
    ends = [{"id": str(each), "src": "0", "dst": "?"} for each in range(OFFENDERS_SHOWN_MAX)]
    report = place.check(CATALOG, {}, put(P=rows, K=ends))

    assert set(report.counts.values()) == {OFFENDERS_SHOWN_MAX}


def test_the_error_names_rule_type_property_and_offenders(here):
    report = here.check(CATALOG, {}, put(P=[{"id": "a", "n": 10, POSITION: 17}]))

    with pytest.raises(IntegrityError) as caught:
        require_clean(report)
    assert str(caught.value) == (
        "the data breaks the schema: 1 violation\n"
        "  range P(n): 1\n"
        "    f:17: P 'a': n 10 is not in 0..9"
        " (fix the data and write it again; nothing was changed)"
    )
