"""Several rows of one id in a load: which of them is loaded, on both engines."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pytest

from omnigraph.errors import InvalidParameterError
from omnigraph.integrity.violations import IntegrityError, Rule
from tests.contract.load.loading import Loaded, changed, edge, lines_of, loaded, node

SCHEMA: Final = """
node City { name: String @key  n: I32?  mail: String? @unique  @range(n, 0..100) }
node Note { text: String? }
edge Road: City -> City { km: I32?  @key(src, dst) }
"""
ENGINES: Final = ("local", "spark")


@pytest.fixture(params=ENGINES)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Loaded:
    if request.param == "spark":
        request.getfixturevalue("spark")
    return loaded(tmp_path, SCHEMA)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.node.callspec.params["world"])


def cities(found: Loaded) -> dict[str, int | None]:
    return {name: row["n"] for name, row in found.rows("City").items()}


def city(name: str, n: int, **more: Any) -> dict[str, Any]:
    return node("City", name=name, n=n, **more)


@pytest.mark.parametrize(
    ("mode", "on_duplicate", "kept"),
    [("merge", None, "last"), ("merge", "first", "first"), ("append", "last", "last"),
     ("overwrite", "first", "first")],
)  # fmt: skip
def test_one_row_of_each_id_is_loaded(world, engine, mode, on_duplicate, kept):
    made = random.Random(7)
    rows = [(f"c{made.randrange(40)}", number % 101) for number in range(300)]
    expected = dict(rows if kept == "last" else reversed(rows))
    world.put(city("c0", 50) if mode != "append" else city("other", 50), engine="local")
    roads = [edge("Road", "c1", "c2", km=km) for km in (1, 2, 3)]

    lines = [*(city(*row) for row in rows), node("Note"), node("Note"), *roads]
    result = world.put(*lines, mode=mode, engine=engine, on_duplicate=on_duplicate)

    assert {"c1", "c2"} <= expected.keys(), "the roads have ends"
    assert cities(world) == expected | ({"other": 50} if mode == "append" else {})
    assert result.superseded == 300 - len(expected) + 2
    assert len(world.ids("Note")) == 2
    assert [row["km"] for row in world.rows("Road").values()] == [3 if kept == "last" else 1]
    counts = changed(result)["City"]
    assert sum(counts[:2]) == len(expected)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_modes_other_than_merge_reject_duplicates(world, engine, mode):
    with pytest.raises(IntegrityError) as refusal:
        world.put(city("Rome", 1), city("Rome", 2), mode=mode, engine=engine)
    assert refusal.value.counts == {Rule.KEY: 1}
    assert "on_duplicate=" in refusal.value.hint
    assert cities(world) == {}


def test_superseded_rows_have_to_be_valid(world, engine):
    with pytest.raises(IntegrityError) as refusal:
        world.put(city("Rome", 101), city("Rome", 2), mode="merge", engine=engine)
    assert [each.rule for each in refusal.value.violations] == [Rule.RANGE]
    assert cities(world) == {}


def test_superseded_rows_take_no_unique_value(world, engine):
    rows = [city("Rome", 1, mail="a@x"), city("Oslo", 2, mail="a@x"), city("Oslo", 3, mail="b@x")]
    result = world.put(*rows, mode="merge", engine=engine)
    assert cities(world) == {"Rome": 1, "Oslo": 3}
    assert result.superseded == 1


def test_quarantine_keeps_one_valid_row_of_each_id(world, engine, tmp_path):
    rejects = tmp_path / "rejects.jsonl"
    rows = [city("Rome", 1), city("Rome", 2), city("Rome", 101), city("Oslo", 101)]
    result = world.put(*rows, mode="merge", engine=engine, on_error="quarantine", rejects=rejects)
    assert cities(world) == {"Rome": 2}
    assert (result.superseded, result.rejected) == (1, 2)
    rejected = [each["row"]["data"] for each in lines_of(rejects)]
    assert [(row["name"], row["n"]) for row in rejected] == [("Rome", 101), ("Oslo", 101)]


def test_quarantine_rejects_all_rows_of_an_id_if_told_to(world, engine, tmp_path):
    rejects = tmp_path / "rejects.jsonl"
    result = world.put(
        city("Rome", 1), city("Rome", 2), city("Oslo", 3), mode="merge", engine=engine,
        on_error="quarantine", rejects=rejects, on_duplicate="reject",
    )  # fmt: skip
    assert cities(world) == {"Oslo": 3}
    assert (result.superseded, result.rejected) == (0, 2)


@pytest.mark.parametrize("world", ["local"], indirect=True)
@pytest.mark.parametrize("make", [pa.Table.from_pylist, pd.DataFrame, list])
def test_rows_in_memory_have_an_order(world, make):
    rows = make([{"name": "Rome", "n": 1}, {"name": "Oslo", "n": 2}, {"name": "Rome", "n": 3}])
    result = world.load({"City": rows}, "merge")
    assert cities(world) == {"Rome": 3, "Oslo": 2}
    assert result.superseded == 1


@pytest.mark.parametrize("world", ["local"], indirect=True)
@pytest.mark.parametrize("column", ["at", "n"])
def test_tables_are_ordered_by_a_column(world, column):
    rows = pa.table({"name": ["Rome", "Rome", "Rome"], "n": [3, 1, None], "at": [3, 1, None]})
    if column == "n":
        rows = rows.drop_columns(["at"])
    world.load({"City": rows}, "merge", order_by=column)
    assert cities(world) == {"Rome": 3}
    with pytest.raises(InvalidParameterError, match="no column 'day' to order"):
        world.load({"City": rows}, "merge", order_by="day")
    with pytest.raises(InvalidParameterError, match="rows of City are a list"):
        world.load({"City": rows.to_pylist()}, "merge", order_by=column)


@pytest.mark.parametrize("world", ["spark"], indirect=True)
def test_frames_of_spark_need_an_order(world, spark):
    rows = [(f"c{n % 30}", n % 101, n) for n in range(90)]
    frame = spark.createDataFrame(rows, "name string, n int, at int").repartition(5, "n")
    without = frame.drop("at")
    with pytest.raises(IntegrityError) as refusal:
        world.load({"City": without}, "merge")
    assert "order_by=" in refusal.value.hint
    with pytest.raises(InvalidParameterError, match="have no order") as told:
        world.load({"City": without}, "merge", on_duplicate="last")
    assert "order_by=" in told.value.hint
    assert cities(world) == {}

    result = world.load({"City": frame}, "merge", order_by="at")

    assert cities(world) == {f"c{n % 30}": n % 101 for n in range(60, 90)}
    assert result.superseded == 60
    world.load({"City": frame}, "merge", order_by="at", on_duplicate="first")
    assert cities(world) == {f"c{n}": n for n in range(30)}
