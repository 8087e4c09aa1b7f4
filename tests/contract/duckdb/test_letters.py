"""What DuckDB makes of letters: each by itself, one character of one."""

import duckdb

from omnigraph.engine.local.letters import other_cases
from omnigraph.model.types import Scalar
from omnigraph.query.functions import ValueFunction
from tests.oracle.functions import call


def test_every_letter_has_the_other_case_of_the_reference() -> None:
    for function in ValueFunction.LOWER, ValueFunction.UPPER:
        letters, others = other_cases("lower" if function is ValueFunction.LOWER else "upper")
        assert len(letters) > 1000
        assert call(function, [letters], Scalar.STRING) == others


def test_characters_beyond_those_have_no_case() -> None:
    beyond = "SELECT chr(i::INT) AS c FROM range(131072, 1114112) t(i)"
    others = f"SELECT count(*) FROM ({beyond}) WHERE upper(c) != c OR lower(c) != c"
    assert duckdb.connect().sql(others).fetchall() == [(0,)]


def test_a_letter_does_not_depend_on_its_neighbours() -> None:
    lowered = duckdb.connect().sql("SELECT lower('\u03a3\u0391\u03a3')").fetchall()
    assert lowered == [("\u03c3\u03b1\u03c3",)]
