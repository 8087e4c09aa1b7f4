"""Files in an object store load as those of a disk do, on both engines, and errors name them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import (
    ErrorCode,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TypeNotFoundError,
)
from omnigraph.integrity.violations import IntegrityError
from omnigraph.load import planning
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.remote_files import RemotePath, RemoteReader, find_file
from omnigraph.storage.roots import Root
from tests.contract.load.loading import Loaded, edge, loaded, node
from tests.support.connect import require_classic

SCHEMA: Final = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""


class Bucket:
    """Files of this machine, and their copies in a bucket."""

    def __init__(self, world: Loaded, bucket: str) -> None:
        self.world = world
        self.url = f"s3://{bucket}/raw"
        self.objects = Objects(Root.parse(self.url), Meter())

    def send(self, *names: str) -> None:
        for name in names:
            self.objects.upload(name, self.world.folder / name)


@pytest.fixture(params=["local", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bucket(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    s3_bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Bucket:
    if "spark" in request.node.name:
        require_classic("its workers have the environment of their server")
        spark = request.getfixturevalue("spark")
        environment = request.getfixturevalue("s3_server").environment
        for name, value in environment.items():
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
        # Even a small object is read by several tasks.
        monkeypatch.setattr(planning, "LOAD_GROUP_BYTES_MIN", 700)
    return Bucket(loaded(tmp_path, SCHEMA), s3_bucket)


def test_folders_patterns_and_files_of_every_kind(bucket, engine):
    world = bucket.world
    people = [node("Person", name=f"p{number:03}", age=number) for number in range(100)]
    world.file("in/graph.jsonl", *people[:40], *(edge("Knows", "p001", "p099") for _ in range(9)))
    world.file("in/deep/er/packed.jsonl.gz", *people[40:60])
    world.file("in/packed.ndjson.zst", *people[60:80])
    world.file("in/Person/part 0%.csv", "name,age", *(f"p{number:03}," for number in range(80, 90)))
    table = pa.table({"name": [f"p{number:03}" for number in range(90, 100)]})
    pq.write_table(table, world.folder / "in" / "Person.parquet", row_group_size=3)
    world.file("in/_SUCCESS", "not read")
    names = [path.relative_to(world.folder) for path in world.folder.glob("in/**/*.*")]
    bucket.send("in/_SUCCESS", *map(str, names))

    world.load(f"{bucket.url}/in", engine=engine)
    there = world.rows("Person")
    assert there == {
        f"p{number:03}": {"name": f"p{number:03}", "age": number if number < 80 else None}
        for number in range(100)
    }
    assert len(world.ends("Knows")) == 1
    assert len(world.rows("Knows")) == 9


def test_patterns_match_as_those_of_files_do(bucket):
    world = bucket.world
    names = ["in/a.jsonl", "in/b.jsonl.gz", "in/.c.jsonl", "in/deep/d.jsonl", "in/deep/er/e.jsonl"]
    for name in names:
        world.file(name, node("Person", name=name))
    bucket.send(*names)
    for pattern in ("in/*.jsonl", "in/?.js*", "in/**/*.jsonl", "in/[!b]*", "in/*", "i[n]/d*/er/*"):
        rows = []
        for place in (str(world.folder), bucket.url):
            world.load(f"{place}/{pattern}", "overwrite")
            rows.append(world.ids("Person"))
        assert rows[0] == rows[1], pattern


def test_an_offender_is_named_by_its_object_and_line(bucket):
    world = bucket.world
    lines = [node("Person", name=f"p{number:03}") for number in range(60)]
    lines[47] = node("Person", name="x", age="old")
    world.file("data.jsonl", *lines)
    world.file("Person.csv.gz", "name,age", *["a,1"] * 7, "b,older")
    bucket.send("data.jsonl", "Person.csv.gz")
    with pytest.raises(IntegrityError) as refusal:
        world.load(bucket.url)
    origins = {violation.origin for violation in refusal.value.violations}
    assert {f"{bucket.url}/data.jsonl:48", f"{bucket.url}/Person.csv.gz:9"} <= origins


# fmt: off
REFUSED: Final = {
    "a missing object":    ("poeple.jsonl", NotFoundError, "no object", "mean people.jsonl"),
    "an empty pattern":    ("*.nothing", NotFoundError, "no object matches", "check the pattern"),
    "an unknown suffix":   ("notes.txt", InvalidInputError, "is unknown", ".jsonl"),
    "no type's name":      ("persn.csv", TypeNotFoundError, "no type persn", "Person"),
    "only marks of tools": ("done", NotFoundError, "has no files to load", "begin with _"),
    "no gzip":             ("bad.jsonl.gz", InvalidInputError, "it is not gzip", "take .gz"),
    "half a gzip":         ("cut.jsonl.gz", InvalidInputError, "or not whole", "pack it again"),
}
# fmt: on


@pytest.mark.parametrize(("name", "error", "said", "advised"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_loaded_is_refused_by_its_url(bucket, name, error, said, advised):
    for stored in ("people.jsonl", "notes.txt", "persn.csv", "done/_SUCCESS", "bad.jsonl.gz"):
        bucket.objects.put(stored, b'{"type":"Person","data":{"name":"x"}}\n')
    bucket.objects.put("cut.jsonl.gz", gzip.compress(b"x" * 9999)[:20])
    with pytest.raises(error, match=said) as refusal:
        bucket.world.load(f"{bucket.url}/{name}")
    assert f"{bucket.url}/{name}" in refusal.value.message
    assert advised in refusal.value.hint


def test_an_unreadable_object_is_refused_alike_by_executors(bucket, engine):
    bucket.objects.put("cut.jsonl.gz", gzip.compress(b"x" * 9999)[:20])
    with pytest.raises(InvalidInputError, match=f"{bucket.url}/cut.jsonl.gz cannot be unpacked"):
        bucket.world.load(f"{bucket.url}/cut.jsonl.gz", engine=engine)


def test_a_missing_bucket_and_an_unknown_store_are_named(bucket):
    with pytest.raises(NotFoundError, match=r"s3://no-such-bucket/raw/a\.jsonl .*does not exist"):
        bucket.world.load("s3://no-such-bucket/raw/a.jsonl")
    with pytest.raises(
        InvalidInputError, match=r"hdfs://lake/a\.jsonl cannot be read without Spark"
    ) as refusal:
        bucket.world.load("hdfs://lake/a.jsonl", engine="local")
    assert "engine spark" in refusal.value.hint
    with pytest.raises(InvalidInputError, match="does not name a bucket"):
        bucket.world.load("s3:///a.jsonl")


@pytest.mark.parametrize("name", ["a.jsonl", "*.jsonl"])
def test_foreign_credentials_name_the_bucket_and_the_variables(tmp_path, denying_store, name):
    assert denying_store
    with pytest.raises(StorageError, match=r"s3://lake/raw.* was denied") as refusal:
        loaded(tmp_path, SCHEMA).load(f"s3://lake/raw/{name}")
    assert refusal.value.code is ErrorCode.STORAGE_DENIED
    assert "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY" in refusal.value.hint


def test_workers_without_credentials_are_told_how_to_get_them_on_spark(
    bucket, spark, monkeypatch, denying_store
):
    """The driver finds the objects; the workers, with their own environment, may not read."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", spark.sparkContext.environment["AWS_ENDPOINT_URL"])
    bucket.world.file("data.jsonl", node("Person", name="ada"))
    bucket.send("data.jsonl")
    monkeypatch.setitem(spark.sparkContext.environment, "AWS_ENDPOINT_URL", denying_store)
    with pytest.raises(StorageError, match=r"raw/data\.jsonl was denied") as refusal:
        bucket.world.load(f"{bucket.url}/data.jsonl", engine="spark")
    assert "AWS_ACCESS_KEY_ID" in refusal.value.hint
    assert "spark.executorEnv.NAME" in refusal.value.hint


def test_an_object_that_is_replaced_meanwhile_is_not_mixed_with_the_new_one(bucket):
    bucket.objects.put("a.jsonl", b"old\n" * 100)
    file = find_file(RemotePath.parse(f"{bucket.url}/a.jsonl"))
    assert file is not None
    reader = RemoteReader(file, block_bytes=8)
    assert reader.read(6) == b"old\nol"
    bucket.objects.put("a.jsonl", b"new\n" * 100)
    assert reader.read(2) == b"d\n", "they were read already"
    with pytest.raises(StorageError, match="replaced while it was read") as refusal:
        reader.read(4)
    assert refusal.value.code is ErrorCode.OBJECT_CHANGED
    bucket.objects.delete("a.jsonl")
    with pytest.raises(StorageError, match="deleted while it was read"):
        reader.read(4)


def test_a_reader_reads_what_is_stored_from_any_place_on(bucket):
    data = bytes(range(256)) * 40
    bucket.objects.put("a.bin", data)
    file = find_file(RemotePath.parse(f"{bucket.url}/a.bin"))
    assert file is not None
    reader = RemoteReader(file, block_bytes=1000)
    for start, size in [(0, 10), (5, 2000), (9_990, 5000), (3, 0), (9_000, 999), (10_240, 5)]:
        assert reader.seek(start) == start
        assert reader.read(size) == data[start : start + size]
        assert reader.tell() == min(len(data), start + size)
    reader.seek(-7, 2)
    assert reader.read() == data[-7:]


# fmt: off
STORES: Final = {
    "Google": ("gs://lake/raw", "GOOGLE_APPLICATION_CREDENTIALS"),
    "Azure":  ("abfss://raw@lake.dfs.core.windows.net", "AZURE_STORAGE_ACCOUNT_KEY"),
}
# fmt: on


@pytest.mark.parametrize(("folder", "variable"), STORES.values(), ids=STORES)
def test_other_stores_are_asked_and_name_their_own_variables(
    tmp_path, denying_store, monkeypatch, folder, variable
):
    monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "none")
    monkeypatch.setenv("GOOGLE_BASE_URL", denying_store)
    monkeypatch.setenv("AZURE_SKIP_SIGNATURE", "true")
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", denying_store)
    monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")
    with pytest.raises(StorageError, match=f"{folder} was denied") as refusal:
        loaded(tmp_path, SCHEMA).load(f"{folder}/*.jsonl")
    assert refusal.value.code is ErrorCode.STORAGE_DENIED
    assert variable in refusal.value.hint
