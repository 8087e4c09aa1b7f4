"""Export on Spark: files that continue each other, equal to the local engine's one file."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.choices import EngineName
from omnigraph.engine.spark import relations
from omnigraph.export.spark.parts import part_bounds
from omnigraph.formats.export_folders import CONTENTS
from tests.contract.export.graphs import every_graph, exported, small_graph
from tests.contract.spark.builders import VALUES
from tests.support.graphs import add_rows

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def many(tmp_path, monkeypatch):
    """A graph of several fragments, each of which becomes a partition."""
    monkeypatch.setattr(relations, "SPARK_PARTITION_ROWS_MIN", 1)
    graph = small_graph(tmp_path / "many.omni")
    for group in range(4):
        rows = [{"id": f"{n * 7919 % 1000:03}", "label": f"«{n}»"} for n in range(group, 400, 4)]
        add_rows(graph, {"Thing": rows})
    return graph


def joined(directory) -> bytes:
    contents = json.loads((directory / CONTENTS).read_text())
    return b"".join((directory / name).read_bytes() for name in contents["files"])


def test_the_parts_in_order_are_the_local_file(many, tmp_path):
    local = exported(many, tmp_path / "one.jsonl", engine="local")
    spread = exported(many, tmp_path / "parts", engine="spark")

    assert joined(tmp_path / "parts") == (tmp_path / "one.jsonl").read_bytes()
    assert (spread.rows, spread.engine) == (local.rows, EngineName.SPARK)
    assert len(spread.files) >= 5
    assert spread.files[0] == "part-00000.jsonl"
    left = sorted(each.name for each in (tmp_path / "parts").iterdir())
    assert left == sorted([*spread.files, CONTENTS])


def test_every_value_is_the_same_on_both_engines(tmp_path):
    graph = every_graph(tmp_path / "g.omni")
    for format_ in ("ndjson", "csv", "parquet"):
        name = tmp_path / format_
        exported(graph, name.with_suffix(".local"), engine="local", format=format_)
        exported(graph, name.with_suffix(".spark"), engine="spark", format=format_)

    assert joined(tmp_path / "ndjson.spark") == (tmp_path / "ndjson.local").read_bytes()
    assert joined(tmp_path / "csv.spark") == (tmp_path / "csv.local/Every.csv").read_bytes()
    local, spark = (
        pq.read_table(tmp_path / f"parquet.{each}/Every.parquet") for each in ("local", "spark")
    )
    assert local.schema.equals(spark.schema)
    assert str(local.to_pylist()) == str(spark.to_pylist())
    assert local.num_columns == len(VALUES) + 1


def test_a_type_without_rows_has_a_file_that_names_its_columns(tmp_path):
    empty = small_graph(tmp_path / "empty.omni")
    result = exported(empty, tmp_path / "out", engine="spark", format="parquet", types=("Thing",))

    assert result.files == ("Thing.parquet/part-00000.parquet",)
    assert pq.read_table(tmp_path / "out" / "Thing.parquet").column_names == ["id", "label"]


def test_parts_are_packed_as_the_name_says(many, tmp_path):
    exported(many, tmp_path / "one.jsonl")
    result = exported(many, tmp_path / "out.jsonl.zst", engine="spark")

    assert all(name.endswith(".jsonl.zst") for name in result.files)
    parts = [pa.input_stream(tmp_path / "out.jsonl.zst" / each).read() for each in result.files]
    assert b"".join(parts) == (tmp_path / "one.jsonl").read_bytes()


def test_a_branch_is_exported_from_its_own_tables(many, tmp_path):
    draft = many.branches.create("draft")
    draft.mutate('query q() { insert Thing { label: "draft" } }')
    exported(draft, tmp_path / "one.jsonl")
    exported(draft, tmp_path / "parts", engine="spark")

    assert b'"draft"' in joined(tmp_path / "parts")
    assert joined(tmp_path / "parts") == (tmp_path / "one.jsonl").read_bytes()


def test_parts_are_of_like_size(many):
    pin = many.snapshot().pins
    [thing] = [each for key, each in pin.items() if key.type_name == "Thing"]
    table = many._store.tables.open(thing.location, ref=thing.ref, version=thing.version)

    bounds = part_bounds(table, 4)

    ids = sorted(table.read(["id"])["id"].to_pylist())
    sizes = [sum(low <= each < high for each in ids) for low, high in spans(bounds)]
    assert sum(sizes) == len(ids)
    assert max(sizes) <= 2 * min(sizes)


def spans(bounds):
    return zip(("", *bounds), (*bounds, "\U0010ffff"), strict=True)
