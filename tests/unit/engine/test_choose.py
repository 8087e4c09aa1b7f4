"""The choice of an engine: what was asked for, what an input calls for, what the size is."""

from collections.abc import Iterator
from typing import Final

import pytest

from omnigraph.choices import EngineName
from omnigraph.engine import choose
from omnigraph.engine.choose import (
    ENVIRONMENT_VARIABLE,
    Constraint,
    Measure,
    by_size,
    follow_up,
    why_not_local,
)
from omnigraph.errors import InvalidInputError, InvalidParameterError

SMALL: Final = Measure.of_count(10, 10, "row to load")
LARGE: Final = Measure.of_bytes(2048, 1000, "{} of input")


@pytest.fixture(autouse=True)
def _nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)


def refuse(measure: Measure) -> Measure:
    message = f"{measure} was measured"
    raise AssertionError(message)


def unmeasured() -> Iterator[Measure]:
    """Measures that must not be taken."""
    return map(refuse, [SMALL])


def test_what_fits_stays_local_for_the_first_reason():
    choice = by_size(None, [SMALL, Measure.of_bytes(0, 1, "{}")])

    assert choice.engine is EngineName.LOCAL
    assert choice.why == "10 rows to load; Spark is used above 10"


@pytest.mark.parametrize("measures", [[SMALL, LARGE], [LARGE, SMALL]])
def test_one_measure_that_does_not_fit_calls_for_spark(measures: list[Measure]):
    choice = by_size("auto", measures)

    assert choice.engine is EngineName.SPARK
    assert choice.why == "2 KiB of input; Spark is used above 1,000 B"


def test_without_spark_all_work_stays_local(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(choose, "is_spark_installed", lambda: False)
    choice = by_size(None, [LARGE])

    assert choice.engine is EngineName.LOCAL
    assert "2 KiB of input; Spark is not installed (pip install" in choice.why


@pytest.mark.parametrize("name", EngineName)
def test_who_asks_for_an_engine_gets_it_unmeasured(name: EngineName):
    assert by_size(name, unmeasured()).engine is name
    assert by_size(name, unmeasured()).why == "requested"


def test_the_environment_asks_where_the_caller_does_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "local")

    assert by_size(None, unmeasured()).engine is EngineName.LOCAL
    assert by_size("spark", unmeasured()).engine is EngineName.SPARK
    assert by_size("auto", [LARGE]).engine is EngineName.SPARK


def test_an_unknown_engine_is_refused_first():
    constraint = Constraint(EngineName.LOCAL, "it is a stream")
    with pytest.raises(InvalidParameterError, match="'flink' is not a valid engine"):
        by_size("flink", unmeasured(), constraint)


def test_a_constraint_decides_where_nobody_asked():
    choice = by_size(None, unmeasured(), Constraint(EngineName.SPARK, "the rows are Spark's"))

    assert (choice.engine, choice.why) == (EngineName.SPARK, "the rows are Spark's")


def test_a_constraint_with_a_refusal_refuses_the_other_engine_alone():
    refusal = InvalidInputError("only Spark can")
    constraint = Constraint(EngineName.SPARK, "the rows are Spark's", refusal)

    with pytest.raises(InvalidInputError, match="only Spark can"):
        by_size("local", unmeasured(), constraint)
    assert by_size("spark", unmeasured(), constraint).why == "requested"
    lenient = Constraint(EngineName.SPARK, "the rows are Spark's")
    assert by_size("local", unmeasured(), lenient).engine is EngineName.LOCAL


def test_work_after_spark_is_for_spark_and_other_work_as_it_was_asked():
    assert follow_up(None, EngineName.SPARK) == "spark"
    assert follow_up("auto", EngineName.LOCAL) == "auto"
    assert follow_up(None, EngineName.LOCAL) is None


def test_what_only_the_local_engine_can_do_is_refused_by_its_size():
    assert why_not_local([SMALL]) is None
    assert why_not_local([LARGE]) == "2 KiB of input; Spark is used above 1,000 B"
