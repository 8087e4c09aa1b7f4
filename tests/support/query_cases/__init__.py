"""Queries and their expected rows, for the reference and for every engine.

An engine is tested like this, with its rows as `tests.oracle.tables.to_rows` returns them:

    if isinstance(case.expected, TooLarge):
        with pytest.raises(InvalidInputError):
            run(case.compile(), case.values(), NOW)
    else:
        found = run(case.compile(), case.values(), NOW)
        assert_same_rows(case.compile(), case.reference(), found)

`tests/unit/oracle/test_reference.py` shows that `case.reference()` is what was expected.
"""

from tests.support.query_cases import (
    comparisons,
    expressions,
    groups,
    lists,
    negations,
    objects,
    optionals,
    paths,
    results,
    scalars,
    several,
    stages,
    subqueries,
    traversals,
    walks,
)
from tests.support.query_cases.case import NOW, Answer, CaseGraph, QueryCase, TooLarge

CASES: tuple[QueryCase, ...] = (
    *comparisons.CASES,
    *expressions.CASES,
    *traversals.CASES,
    *walks.CASES,
    *negations.CASES,
    *optionals.CASES,
    *objects.CASES,
    *results.CASES,
    *groups.CASES,
    *lists.CASES,
    *scalars.CASES,
    *several.CASES,
    *stages.CASES,
    *subqueries.CASES,
    *paths.CASES,
)

__all__ = ["CASES", "NOW", "Answer", "CaseGraph", "QueryCase", "TooLarge"]
