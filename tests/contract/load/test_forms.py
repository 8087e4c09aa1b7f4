"""ORC and Avro load as Parquet does, on both engines, mapped, in dialects, and in buckets."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.integrity.violations import IntegrityError
from omnigraph.load import planning
from omnigraph.load.readers import avro_files
from omnigraph.load.sources import resolve
from omnigraph.load.splits import StripeSplit
from tests.contract.load.loading import Loaded, loaded

SCHEMA: Final = """
node Person {
  name: String @key
  age: I32?
  born: Date?
  seen: DateTime?
  tags: [String]?
  spot: Vector(2)?
  mood: enum(glad, sad)?
  rate: F64?
  photo: Blob?
}
node City { name: String @key }
"""

FIELDS: Final[list[dict[str, Any]]] = [
    {"name": "name", "type": "string"},
    {"name": "age", "type": ["null", "int"]},
    {"name": "born", "type": ["null", {"type": "int", "logicalType": "date"}]},
    {"name": "seen", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
    {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
    {"name": "spot", "type": ["null", {"type": "array", "items": "float"}]},
    {
        "name": "mood",
        "type": ["null", {"type": "enum", "name": "Mood", "symbols": ["glad", "sad"]}],
    },
    {"name": "rate", "type": ["null", "double"]},
    {"name": "photo", "type": ["null", "bytes"]},
]
ADA: Final[dict[str, Any]] = {
    "name": "Ada",
    "age": 36,
    "born": date(1815, 12, 10),
    "seen": datetime(2024, 1, 31, 12, 0, 0, 5, tzinfo=UTC),
    "tags": ["x", "y"],
    "spot": [1.0, 2.5],
    "mood": "glad",
    "rate": 0.5,
    "photo": b"\x00\xff",
}
NOBODY: Final = {**dict.fromkeys(ADA), "name": "Nobody"}


@pytest.fixture
def world(tmp_path: Path) -> Loaded:
    return loaded(tmp_path, SCHEMA)


def avro(fields: Any, records: list[Any], codec: str = "null") -> bytes:
    schema = {"type": "record", "name": "R", "fields": fields} if fields else "string"
    stream = io.BytesIO()
    fastavro.writer(stream, schema, records, codec=codec, sync_interval=50)
    return stream.getvalue()


def as_orc(table: pa.Table, **options: Any) -> bytes:
    stream = pa.BufferOutputStream()
    orc.write_table(table, stream, **options)
    return bytes(stream.getvalue().to_pybytes())


def put(world: Loaded, name: str, data: bytes) -> Path:
    path = world.folder / name
    path.write_bytes(data)
    return path


def values(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "photo"}


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_records_of_avro_have_the_values_of_their_logical_types(world, codec):
    world.load(put(world, "Person.avro", avro(FIELDS, [ADA, NOBODY], codec)))
    rows = world.rows("Person")
    assert [values(rows[name]) for name in ("Ada", "Nobody")] == [values(ADA), values(NOBODY)]
    [photo] = world.graph.query(
        'query q() { match { $p: Person { name: "Ada" } } return { $p.photo } }'
    ).rows()
    assert photo == {"p.photo": b"\x00\xff"}


def test_columns_of_orc_have_the_values_of_their_types(world):
    kinds = [
        ("name", pa.utf8()),
        ("age", pa.int32()),
        ("born", pa.date32()),
        ("seen", pa.timestamp("ns", "UTC")),
        ("tags", pa.list_(pa.utf8())),
        ("spot", pa.list_(pa.float32())),
        ("mood", pa.utf8()),
        ("rate", pa.float64()),
        ("photo", pa.binary()),
    ]
    table = pa.Table.from_pylist([ADA, NOBODY], pa.schema(kinds))
    world.load(put(world, "Person.orc", as_orc(table)))
    rows = world.rows("Person")
    assert [values(rows[name]) for name in ("Ada", "Nobody")] == [values(ADA), values(NOBODY)]


def in_stripes(first: int, count: int) -> bytes:
    """An ORC file of several stripes."""
    names = [f"{number:06}" + "x" * 60 for number in range(first, first + count)]
    ages = pa.array([number % 100 for number in range(count)], pa.int32())
    table = pa.table({"full name": names, "age": ages})
    return as_orc(table, stripe_size=1 << 16, batch_size=1024, compression="uncompressed")


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_many_forms_in_one_load(world, request, monkeypatch, engine):
    if engine == "spark":
        request.getfixturevalue("spark")
        monkeypatch.setattr(planning, "LOAD_GROUP_BYTES_MIN", 300_000)
    put(world, "people.orc", in_stripes(0, 20_000))
    put(world, "more.avro", avro(FIELDS[:2], [{"name": f"a{n}", "age": n} for n in range(500)]))
    put(world, "City.csv", b"Oslo;x\nBergen;NA\n")
    people = [f"{world.folder}/people.orc:name=full name", world.folder / "more.avro"]
    result = world.load(
        [{"Person": people}, world.folder / "City.csv"],
        csv="delimiter=;,header=name,rest,null=NA",
        ignore_unknown=True,
        engine=engine,
    )
    assert result.changes["Person"].inserted == 20_500
    rows = world.rows("Person")
    assert {name: row["age"] for name, row in rows.items() if name[0] == "a"} == {
        f"a{number}": number for number in range(500)
    }
    assert sum(row["age"] for row in rows.values()) == 200 * 4950 + 499 * 250
    assert world.ids("City") == {"Oslo", "Bergen"}


def test_stripes_are_read_apart_and_their_rows_are_numbered_through(world, monkeypatch):
    path = put(world, "Person.orc", in_stripes(0, 20_000))
    stripes = orc.ORCFile(path).nstripes
    assert stripes > 3
    catalog = world.graph.schema.show().catalog
    inputs = resolve({"Person": f"{path}:name=full name"}, catalog)
    monkeypatch.setattr(planning, "LOAD_GROUP_BYTES_MIN", 1)
    monkeypatch.setattr(planning, "LOAD_GROUP_BYTES_MAX", 1)
    splits = planning.plan_shared(inputs, 2, None, access_hint="")  # type: ignore[arg-type]
    groups = [split.stripes for split in splits if isinstance(split, StripeSplit)]
    assert groups == [(number,) for number in range(stripes)]


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_an_offender_in_a_later_stripe_has_the_number_of_its_row(
    world, request, monkeypatch, engine
):
    if engine == "spark":
        request.getfixturevalue("spark")
        monkeypatch.setattr(planning, "LOAD_GROUP_BYTES_MIN", 200_000)
    names = [f"{number:06}" + "x" * 60 for number in range(9_000)]
    ages = [number % 100 for number in range(9_000)]
    ages[8_000] = 1 << 40
    table = pa.table({"name": names, "age": pa.array(ages, pa.int64())})
    options = {"stripe_size": 1 << 16, "batch_size": 1024, "compression": "uncompressed"}
    path = put(world, "Person.orc", as_orc(table, **options))
    assert orc.ORCFile(path).nstripes > 2
    with pytest.raises(IntegrityError, match=r"Person\.orc:8001: "):
        world.load(path, engine=engine)


AVRO: Final = avro(FIELDS[:2], [{"name": f"a{n}", "age": n} for n in range(99)])

# fmt: off
REFUSED: Final = {
    "no Avro":         ("Person.avro", b"this is none", "cannot be read", "whole"),
    "empty Avro":      ("Person.avro", b"", "cannot be read", "whole"),
    "cut off":         ("Person.avro", AVRO[:-30], "at row .* or after", "whole"),
    "no records":      ("Person.avro", avro(None, ["a"]), "its values are not records", "schema"),
    "a foreign field": ("City.avro", AVRO, '"age", and City has no such', "--ignore-unknown"),
    "no ORC":          ("Person.orc", b"this is none", "cannot be read", "whole"),
    "empty ORC":       ("Person.orc", b"", "cannot be read", "whole"),
    "half an ORC":     ("Person.orc", in_stripes(0, 99)[:50], "cannot be read", "whole"),
    "packed Avro":     ("Person.avro.gz", AVRO, "is unknown", ".avro"),
}
# fmt: on


@pytest.mark.parametrize(("name", "data", "said", "advised"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_is_not_what_its_name_says_is_refused_by_name(world, name, data, said, advised):
    path = put(world, name, data)
    with pytest.raises(InvalidInputError, match=said) as refusal:
        world.load(path)
    assert str(path) in refusal.value.message
    assert advised in refusal.value.hint


def test_a_value_that_does_not_fit_is_refused_with_its_row(world):
    field = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    fields = [FIELDS[0], {"name": "age", "type": field}]
    rows = [{"name": "a", "age": Decimal("7.00")}, {"name": "b", "age": Decimal("7.50")}]
    path = put(world, "Person.avro", avro(fields, rows))
    with pytest.raises(IntegrityError, match=r"Person\.avro:2: .*7\.5"):
        world.load(path)


def test_without_what_reads_avro_the_error_says_how_to_install_it(world, monkeypatch):
    monkeypatch.setattr(avro_files, "find_spec", lambda _: None)
    with pytest.raises(InvalidInputError, match="fastavro") as refusal:
        world.load(put(world, "Person.avro", AVRO))
    assert refusal.value.code is ErrorCode.NOT_INSTALLED
    assert "pip install 'omnigraph[avro]'" in refusal.value.hint


def not_utf8(kind: str) -> pa.Table:
    """A row with a text of two bytes that are no characters, where a column of texts can be."""
    offsets = pa.py_buffer(b"\0\0\0\0\2\0\0\0")
    texts = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    names = pa.array(["Ada"])
    match kind:
        case "key":
            return pa.table({"name": texts})
        case "list":
            lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), texts)
            return pa.table({"name": names, "tags": lists})
        case "dictionary":
            places = pa.array([0], pa.int32())
            return pa.table({"name": names, "note": pa.DictionaryArray.from_arrays(places, texts)})
        case _:
            return pa.table({"name": names, "note": texts})


@pytest.mark.parametrize("kind", ["key", "text", "list", "dictionary"])
@pytest.mark.parametrize("form", ["parquet", "orc", "memory"])
def test_texts_that_are_not_utf8_are_refused(tmp_path, form, kind):
    """Lance would store them, and nobody could read the table again."""
    schema = "node Person { name: String @key  note: String?  tags: [String]? }"
    graph = omnigraph.init(tmp_path / "world", schema)
    rows = not_utf8(kind)
    if form == "parquet":
        pq.write_table(rows, tmp_path / "Person.parquet")
    if form == "orc":
        if kind == "dictionary":
            rows = rows.set_column(1, "note", rows["note"].cast(pa.string()))
        orc.write_table(rows, tmp_path / "Person.orc")
    source = {"Person": rows} if form == "memory" else str(tmp_path / f"Person.{form}")
    with pytest.raises(InvalidInputError, match=r"cannot be read, at row 1 or after.*UTF8"):
        graph.load(source)
    assert graph.query("query q() { match { $p: Person } return { $p.name } }").rows() == []
