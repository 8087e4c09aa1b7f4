"""Bound values: each reaches Spark as it is, in its type."""

from datetime import datetime

import pytest

from omnigraph.engine.spark.values import bind
from omnigraph.model.types import ListType, Scalar, VectorType
from omnigraph.relational.plans import BoundValue
from tests.contract.spark.builders import AWKWARD, VALUES, data, plan
from tests.contract.spark.test_types import same

NOTHING = data()


def echoed(engine, value, type_):
    asked = plan("SELECT :p", {"v": type_}, values={"p": BoundValue(value, type_)})
    return engine.run(asked, NOTHING)["v"][0].as_py()


def test_values_of_every_type_are_bound_exactly(engine):
    bound = {
        f"p{n}": BoundValue(value, type_)
        for n, (type_, value) in enumerate(
            (type_, value) for type_, values in VALUES.items() for value in [*values, None]
        )
    }
    columns = {name: each.type for name, each in bound.items()}
    text = f"SELECT {', '.join(f':{name}' for name in bound)}"

    found = engine.run(plan(text, columns, values=bound), NOTHING)

    for name, each in bound.items():
        assert same(found[name][0].as_py(), each.value), each


def test_a_value_has_its_type_in_every_expression(engine):
    values = {"a": BoundValue(2**63, Scalar.U64), "b": BoundValue(None, Scalar.U64)}
    text = "SELECT :a - 1, COALESCE(:b, :a)"

    found = engine.run(plan(text, {"x": Scalar.I64, "y": Scalar.U64}, values=values), NOTHING)

    assert found.to_pylist() == [{"x": 2**63 - 1, "y": 2**63}]


def test_a_text_of_a_megabyte_is_bound(engine):
    text = AWKWARD * (1_000_000 // len(AWKWARD))

    assert echoed(engine, text, Scalar.STRING) == text


def test_an_instant_without_a_zone_is_utc(engine):
    found = echoed(engine, datetime(2024, 3, 31, 2, 30, 0, 1), Scalar.DATETIME)

    assert found.isoformat() == "2024-03-31T02:30:00.000001+00:00"


def test_a_value_may_stand_in_several_places(engine):
    asked = plan(
        "SELECT :p + :p, :q",
        {"x": Scalar.I64, "y": Scalar.STRING},
        values={"p": BoundValue(2, Scalar.I64), "q": BoundValue(":p", Scalar.STRING)},
    )

    assert engine.run(asked, NOTHING).to_pylist() == [{"x": 4, "y": ":p"}]


@pytest.mark.parametrize(("limit", "rows"), [(0, 0), (2, 2), (2**63 - 1, 3)])
def test_a_limit_may_be_bound(engine, limit, rows):
    asked = plan(
        "SELECT v FROM (VALUES (1), (2), (3)) AS t(v) LIMIT :n",
        {"v": Scalar.I32},
        values={"n": BoundValue(limit, Scalar.I64)},
    )

    assert engine.run(asked, NOTHING).num_rows == rows


def test_a_long_list_is_one_argument():
    values = {"p": BoundValue([0.5] * 4096, VectorType(4096))}
    values["q"] = BoundValue(["x"] * 10_000, ListType(Scalar.STRING))

    _, arguments = bind(plan("SELECT :p, :q", {}, values=values).tree, values)

    assert len(arguments) == 2


def test_binding_leaves_the_plan_alone():
    values = {"p": BoundValue(1, Scalar.I64)}
    asked = plan("SELECT :p LIMIT :p", {"x": Scalar.I64}, values=values)
    before = asked.tree.sql()

    bind(asked.tree, values)

    assert asked.tree.sql() == before
