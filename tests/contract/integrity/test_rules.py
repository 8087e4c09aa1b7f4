"""Each rule alone and all of them together, on every engine."""

import math

import pytest

from omnigraph.schema.parser import parse_schema
from tests.contract.integrity.builders import found
from tests.contract.integrity.cases import CASES, Case


def same(left: object, right: object) -> bool:
    """Equality, where NaN is itself."""
    if isinstance(left, tuple | list) and isinstance(right, tuple | list):
        return len(left) == len(right) and all(map(same, left, right))
    both = isinstance(left, float) and isinstance(right, float)
    return left == right or (both and math.isnan(left) and math.isnan(right))  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_delta_breaks_exactly_these_rules(place, case: Case):
    report = place.check(parse_schema(case.schema), case.committed, case.change)

    assert same(found(report), case.broken), found(report)
    assert report.total == len(case.broken)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_an_index_changes_no_answer(here, case: Case):
    report = here.check(parse_schema(case.schema), case.committed, case.change, indexed=True)

    assert same(found(report), case.broken), found(report)
