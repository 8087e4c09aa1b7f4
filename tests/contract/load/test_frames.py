"""Rows as Python libraries hold them: frames of pandas and scalars of NumPy."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

from omnigraph.errors import InvalidInputError
from omnigraph.integrity.violations import IntegrityError
from tests.contract.load.loading import Loaded, loaded

SCHEMA: Final = """
node Person {
  name: String @key  age: I32?  weight: F32?  happy: Bool?  born: Date?  seen: DateTime?
}
"""


@pytest.fixture
def world(tmp_path: Path) -> Loaded:
    return loaded(tmp_path, SCHEMA)


@pytest.mark.parametrize(
    ("rows", "message", "hint"),
    [
        (pd.DataFrame([["a", "b"]], columns=["name", "name"]), 'two columns "name"', "rename"),
        (pd.DataFrame({"name": ["a"]}, index=pd.Index(["b"], name="name")), "two columns", "level"),
        (pd.Series(["a"], name="name"), "Series cannot be loaded", "to_frame"),
        (pd.DataFrame({"name": ["a"]}, index=pd.Index([7], name="row")), 'a column "row"', "drop"),
    ],
)
def test_frames_that_are_refused_name_the_reason(world, rows, message, hint):
    with pytest.raises(InvalidInputError, match=message) as refusal:
        world.load({"Person": rows})
    assert hint in refusal.value.hint


def test_named_index_is_a_column(world):
    frame = pd.DataFrame({"name": ["Ada", "Ada", "Bob"], "age": [1, 2, 3]})
    world.load({"Person": frame.groupby("name").sum()})
    assert {name: row["age"] for name, row in world.rows("Person").items()} == {"Ada": 3, "Bob": 3}


def test_column_of_mixed_values_reports_its_rows(world):
    frame = pd.DataFrame({"name": ["Ada", "Bob", "Cy"], "age": [1, "two", None]}, dtype=object)
    with pytest.raises(IntegrityError) as refusal:
        world.load({"Person": frame})
    [violation] = refusal.value.violations
    assert (violation.origin, violation.breach.properties) == ("Person:2", ("age",))
    world.load({"Person": frame.replace("two", 2.0)})
    rows = world.rows("Person")
    assert [rows[name]["age"] for name in ("Ada", "Bob", "Cy")] == [1, 2, None]


SCALARS: Final[dict[str, Any]] = {
    "age": np.int8(7),
    "weight": np.float32(0.1),
    "happy": np.bool_(True),  # noqa: FBT003
    "born": np.datetime64("2024-02-29"),
    "seen": np.datetime64("2024-02-29T01:02:03.000004000", "ns"),
}


def test_scalars_of_numpy_are_values(world):
    world.load({"Person": [{"name": np.str_("Ada"), **SCALARS}]})
    assert world.rows("Person")["Ada"] == {
        "name": "Ada",
        "age": 7,
        "weight": float(np.float32(0.1)),
        "happy": True,
        "born": date(2024, 2, 29),
        "seen": datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC),
    }
    query = """query q($happy: Bool, $weight: F32) {
      match { $p: Person  $p.happy = $happy  $p.weight = $weight } return { $p.name }
    }"""
    given = {"happy": np.bool_(True), "weight": SCALARS["weight"]}  # noqa: FBT003
    assert world.graph.query(query, given).rows() == [{"p.name": "Ada"}]
    with pytest.raises(IntegrityError, match="datetime64 is not of type DateTime"):
        world.load({"Person": [{"name": "Bob", "seen": np.datetime64(1, "ns")}]})


MISSING: Final[dict[str, dict[str, Any]]] = {
    "of pandas": {"age": pd.NA, "weight": pd.NA, "happy": pd.NA, "born": pd.NaT, "seen": pd.NaT},
    "of NumPy": {"born": np.datetime64("NaT", "D"), "seen": np.datetime64("NaT", "us")},
}


@pytest.mark.parametrize("values", MISSING.values(), ids=MISSING)
def test_missing_values_of_libraries_are_null(world, values):
    rows = [{"name": "Ada", **SCALARS}, {"name": "Bob", **values}]
    world.load({"Person": rows})
    assert world.rows("Person")["Bob"] == {"name": "Bob", **dict.fromkeys(SCALARS)}


def test_missing_value_is_a_parameter(world):
    world.load({"Person": [{"name": "Ada"}]})
    query = "query q($age: I32?) { match { $p: Person } return { coalesce($age, 7) as age } }"
    assert world.graph.query(query, {"age": pd.NA}).rows() == [{"age": 7}]


def test_records_of_a_frame_are_rows(world):
    frame = pd.DataFrame(
        {
            "name": ["Ada", "Bob"],
            "age": pd.array([36, None], dtype="Int64"),
            "happy": pd.array([True, None], dtype="boolean"),
            "seen": pd.to_datetime(["2024-02-29T01:02:03Z", None], utc=True),
        }
    )
    world.load({"Person": frame.to_dict("records")})
    found = world.rows("Person")
    world.load({"Person": frame}, mode="overwrite")
    assert found == world.rows("Person")
