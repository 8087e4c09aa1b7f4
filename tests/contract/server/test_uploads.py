"""Files that clients upload: small ones that stand for very much are refused."""

import gzip
import io
import time

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import omnigraph
from omnigraph.errors import ErrorCode, LimitExceededError
from tests.contract.server.test_http import problem

ROW = b'{"type": "Person", "data": {"name": "of a bomb"}}\n'
BOMB = b"\n" * 4_900_000 + ROW
MODEST = ROW.replace(b"of a bomb", b"modest")


@pytest.fixture
def world(served):
    with omnigraph.connect(f"{served.url}/graphs/world", served.token) as own:
        yield own


def repeated_names(count):
    sink = io.BytesIO()
    names = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), ["one name"])
    pq.write_table(pa.table({"name": names}), sink, compression="zstd")
    return sink.getvalue()


def repeated_records(count, text, codec="deflate"):
    sink = io.BytesIO()
    fields = [{"name": "name", "type": "string"}]
    schema = {"type": "record", "name": "Person", "fields": fields}
    fastavro.writer(sink, schema, [{"name": text}] * count, codec=codec)
    return sink.getvalue()


FILES = {
    "Person.jsonl.gz": gzip.compress(BOMB),
    "Person.jsonl.zst": zstandard.compress(BOMB),
    "Person.csv.gz": gzip.compress(b"name\n" + b'"x\n",' * 900_000),
    "Person.parquet": repeated_names(2_000_000),
    "Person.avro": repeated_records(1, "x" * 4_900_000),
    "many/Person.avro": repeated_records(500_000, "one name"),
    "bzip2/Person.avro": repeated_records(1, "x" * 4_900_000, "bzip2"),
    "xz/Person.avro": repeated_records(1, "x" * 4_900_000, "xz"),
    "zstandard/Person.avro": repeated_records(1, "x" * 4_900_000, "zstandard"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_compressed_file_of_a_client_expands_as_little_as_a_body(world, tmp_path, name):
    assert len(FILES[name]) < 40_000
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(FILES[name])
    begun = time.monotonic()
    with pytest.raises(LimitExceededError, match="expands more than 100 times") as refused:
        world.load(file)
    assert refused.value.code is ErrorCode.BODY_TOO_LARGE
    assert time.monotonic() - begun < 3
    assert world.entity("Person", "of a bomb") is None


def test_a_compressed_stream_of_a_client_does_so_too(world):
    with pytest.raises(LimitExceededError, match="expands more than 100 times"):
        world.load(io.BytesIO(gzip.compress(BOMB)))


def test_columns_of_a_body_do_so_too(client):
    headers = {"Content-Type": "application/vnd.apache.parquet"}
    body = repeated_names(2_000_000)
    answer = client.post("/graphs/world/load?type=Person", content=body, headers=headers)
    place = answer.headers.get("location")
    if place is None:
        problem(answer, 413, "body_too_large")
        return
    while (job := client.get(place).json())["state"] in ("queued", "running"):
        time.sleep(0.05)
    assert job["problem"]["code"] == "body_too_large"


def test_a_modest_compressed_file_is_loaded(world, tmp_path):
    (tmp_path / "people.jsonl.gz").write_bytes(gzip.compress(MODEST))
    world.load(tmp_path / "people.jsonl.gz", index=False)
    assert world.entity("Person", "modest") is not None


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "zstandard"])
def test_a_modest_file_of_avro_is_loaded(world, tmp_path, codec):
    (tmp_path / "Person.avro").write_bytes(repeated_records(1, f"by {codec}", codec))
    world.load(tmp_path / "Person.avro", index=False)
    assert world.entity("Person", f"by {codec}") is not None
