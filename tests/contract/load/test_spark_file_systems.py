"""Files of a file system that only Spark knows: here a mount table of Hadoop's, over a directory.

HDFS is read the same way, by Hadoop's own client, which Spark brings along.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from omnigraph.errors import InvalidInputError, NotFoundError, StorageError
from omnigraph.integrity.violations import IntegrityError
from omnigraph.load.planning import plan_shared
from omnigraph.load.spark import file_systems, load
from tests.contract.load.loading import Loaded, edge, loaded, node

SCHEMA: Final = """
node Person { name: String @key  age: I64? }
node City { name: String @key }
edge LivesIn: Person -> City
"""
_numbers = count()


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Iterator[str]:
    """The URL that Spark knows the folder of a test by."""
    # Hadoop keeps a file system for as long as its process, so each test has another one.
    name = f"lake{next(_numbers)}"
    mount = f"fs.viewfs.mounttable.{name}.link./raw"
    # Of the context, not of a session: a load takes whichever session is active.
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set(mount, tmp_path.as_uri())
    yield f"viewfs://{name}/raw"
    hadoop.unset(mount)


@pytest.fixture
def world(tmp_path: Path) -> Loaded:
    return loaded(tmp_path, SCHEMA)


def test_files_of_all_forms_are_found_by_name_folder_and_pattern(world: Loaded, lake: str) -> None:
    world.file("in/1 [a].jsonl.gz", node("Person", name="Ada"), edge("LivesIn", "Bo", "Oslo"))
    world.file("in/Person/2024/part.csv", "name;age", "Bo;7")
    world.file("in/empty.jsonl")
    world.file("in/_SUCCESS")
    pq.write_table(pa.table({"town": ["Oslo"]}), world.folder / "towns.parquet")
    source = [{"City": f"{lake}/towns.parquet:name=town"}, f"{lake}/in"]
    result = world.load(source, csv="delimiter=;")
    assert (result.engine, result.why) == ("spark", f"only Spark can read {lake}/towns.parquet")
    assert world.rows("Person") == {
        "Ada": {"name": "Ada", "age": None},
        "Bo": {"name": "Bo", "age": 7},
    }
    assert world.ends("LivesIn") == {("Bo", "Oslo")}


def test_reports_name_the_file_and_the_line(world: Loaded, lake: str) -> None:
    world.file("in/a.jsonl", node("Person", name="Ada"), node("Person", name="Bo", age="old"))
    world.file("in/b.jsonl", node("Person", name="Ada"))
    with pytest.raises(IntegrityError) as refusal:
        world.load(f"{lake}/in/*.jsonl")
    assert {(each.origin, each.rule) for each in refusal.value.violations} == {
        (f"{lake}/in/a.jsonl:2", "type"),
        (f"{lake}/in/a.jsonl:1", "key"),
    }


def test_what_cannot_be_read_is_named(
    world: Loaded, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.file("in/a.jsonl", node("Person", name="Ada"))
    url = f"{lake}/in/a.jsonl"
    with pytest.raises(InvalidInputError, match=f"{url} cannot be read without Spark"):
        world.load(url, engine="local")
    with pytest.raises(NotFoundError, match=f"file {lake}/out does not exist"):
        world.load(f"{lake}/out")
    with pytest.raises(
        InvalidInputError, match=r"Spark has no file system for foo://lake/a\.jsonl"
    ):
        world.load("foo://lake/a.jsonl")
    with pytest.raises(StorageError, match=r"hdfs://no\.where/a\.jsonl cannot be read by Spark"):
        world.load("hdfs://no.where/a.jsonl")
    with monkeypatch.context() as patched:
        patched.setattr(file_systems, "LOAD_SPARK_FILE_BYTES_MAX", 10)
        with pytest.raises(InvalidInputError, match=f"{url} has .* bytes, and Spark gives at most"):
            world.load(url)
    assert world.ids("Person") == set()


def test_a_file_that_is_replaced_meanwhile_fails_the_load(
    world: Loaded, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{lake}/in/a.jsonl"
    world.file("in/a.jsonl", node("Person", name="Ada"))
    plan = plan_shared

    def replace_first(*arguments, **more):
        world.file("in/a.jsonl", node("Person", name="Bo"), node("Person", name="Cy"))
        return plan(*arguments, **more)

    monkeypatch.setattr(load, "plan_shared", replace_first)
    with pytest.raises(StorageError, match=f"{url} was replaced while it was loaded"):
        world.load(url)
    assert world.ids("Person") == set()
