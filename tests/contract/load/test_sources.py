"""Everything that can be loaded, in each of its forms, and what is refused by name."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from omnigraph.choices import EngineName
from omnigraph.errors import (
    ErrorCode,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TypeNotFoundError,
)
from omnigraph.integrity.violations import IntegrityError
from omnigraph.load import choice
from omnigraph.load.choice import choose_engine
from omnigraph.load.sources import FrameInput, resolve
from tests.contract.load.loading import Loaded, edge, loaded, node

SCHEMA: Final = """
node Person { name: String @key  age: I32?  tags: [String]?  spot: Vector(2)? }
node City { name: String @key }
edge Knows: Person -> Person { since: Date?  weight: F32? }
edge Sent: Person -> Person { from: String?  to: String? }
"""
PEOPLE: Final = (node("Person", name="ada", age=36), node("Person", name="bob"))
TABLE: Final = pa.table({"name": ["ada", "bob"], "age": pa.array([36, None], pa.int64())})


CUT_OFF: Final = pa.compress(b"x" * 9999, codec="zstd", asbytes=True)[:15]


@pytest.fixture
def world(tmp_path: Path) -> Loaded:
    return loaded(tmp_path, SCHEMA)


def ages(found: Loaded) -> dict[str, Any]:
    return {name: row["age"] for name, row in found.rows("Person").items()}


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("name", ["data.jsonl", "data.ndjson", "Person.jsonl"])
def test_graph_files_packed_in_any_way(world, name, suffix):
    world.load(world.file(name + suffix, *PEOPLE))
    assert ages(world) == {"ada": 36, "bob": None}


def test_lines_end_in_any_way_and_may_be_blank_or_marked(world):
    path = world.folder / "odd.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"type":"Person","data":{"name":"ada","age":36}}\r\n'
        b"\r\n   \n"
        b'  {"data":{"name":"bob"},"type":"Person"}'
    )
    world.load(path)
    assert ages(world) == {"ada": 36, "bob": None}


def test_a_line_that_is_not_utf8_is_refused_with_its_number(world):
    path = world.folder / "odd.jsonl"
    path.write_bytes(
        b'{"type":"City","data":{"name":"Oslo"}}\n{"type":"City","data":{"name":"\xff"}}\n'
    )
    with pytest.raises(IntegrityError, match=r"odd\.jsonl:2: .*UTF-8"):
        world.load(path)


def test_many_files_a_pattern_and_a_directory(world):
    world.file("in/a.jsonl", PEOPLE[0])
    world.file("in/b.jsonl.gz", PEOPLE[1])
    world.file("in/_SUCCESS")
    world.load(str(world.folder / "in"))
    world.load([world.file("c.jsonl", node("City", name="Oslo")), world.folder / "in"], "merge")
    world.load(str(world.folder / "in" / "*.jsonl*"), "merge")
    assert world.ids("Person") == {"ada", "bob"}
    assert world.ids("City") == {"Oslo"}


def test_a_directory_named_by_a_type_holds_its_rows(world):
    world.file("Person/part-0.jsonl", '{"name":"ada","age":36}')
    world.file("Person/part-1.jsonl", '{"name":"bob"}')
    world.load(world.folder / "Person")
    assert ages(world) == {"ada": 36, "bob": None}


@pytest.mark.parametrize("packed", [False, True])
def test_streams(world, packed):
    path = Path(world.file("data.jsonl.zst" if packed else "data.jsonl", *PEOPLE))
    world.load(io.BytesIO(path.read_bytes()))
    assert ages(world) == {"ada": 36, "bob": None}


def test_standard_input(world, monkeypatch):
    path = Path(world.file("data.jsonl", *PEOPLE))
    with path.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        result = world.load("-")
    assert ages(world) == {"ada": 36, "bob": None}
    assert "stream" in result.why


def test_csv_tells_an_empty_text_from_none_and_counts_lines(world):
    path = world.folder / "people.csv"
    path.write_text('name,age,tags,spot\n"a\nb",36,"[""x"",""y""]","[1, 2.5]"\n\n"",,,\n')
    world.load({"Person": path})
    rows = world.rows("Person")
    assert rows["a\nb"] == {"name": "a\nb", "age": 36, "tags": ["x", "y"], "spot": [1.0, 2.5]}
    assert rows[""] == {"name": "", "age": None, "tags": None, "spot": None}
    path.write_text('name,age\n"c\nd",1\n\nx,old\n')
    with pytest.raises(IntegrityError, match=r"people\.csv:5: .*old"):
        world.load({"Person": path})


def test_a_line_of_csv_with_too_many_columns_is_refused_with_its_number(world):
    path = world.folder / "Person.csv"
    path.write_text("name,age\nada,36\nbob,1,2\ncy\n")
    with pytest.raises(IntegrityError) as refusal:
        world.load(path)
    told = {Path(each.origin).name: each.message for each in refusal.value.violations}
    assert told == {
        "Person.csv:3": "the line is refused: it has 3 columns, and the first line has 2",
        "Person.csv:4": "the line is refused: it has 1 column, and the first line has 2",
    }
    path.write_text('name,age\nada,36\n"bob,1\ncy,2\n')
    with pytest.raises(IntegrityError, match="a quote is opened in it and never closed"):
        world.load(path)


def test_lines_of_csv_are_counted_through_blocks_and_line_breaks(world, monkeypatch):
    lines = ["name,age", *(f"n{number},{number}" for number in range(200))]
    wrong = {50: "a,b,c", 120: "x,old", 130: "y,older", 150: "lonely"}
    for place, text in {**wrong, 121: '"many\nlines",7', 160: ""}.items():
        lines[place] = text
    text = "\n".join(lines) + "\n"
    path = world.folder / "Person.csv"
    path.write_text(text)
    monkeypatch.setattr("omnigraph.load.readers.csv_files._CSV_BLOCK_BYTES", 64)
    with pytest.raises(IntegrityError) as refusal:
        world.load(path)
    told = {int(each.origin.rpartition(":")[2]) for each in refusal.value.violations}
    assert told == {n for n, line in enumerate(text.splitlines(), 1) if line in wrong.values()}


def test_per_type_files_by_name_and_by_map(world):
    pcsv.write_csv(TABLE, world.folder / "Person.csv")
    pq.write_table(
        pa.table({"from": ["ada"], "to": ["bob"], "since": ["2024-01-31"]}),
        world.folder / "friends.parquet",
    )
    world.load([world.folder / "Person.csv", {"Knows": world.folder / "friends.parquet"}])
    assert ages(world) == {"ada": 36, "bob": None}
    assert world.ends("Knows") == {("ada", "bob")}


def test_properties_called_like_ends_need_src_and_dst(world):
    world.put(*PEOPLE)
    world.load({"Sent": pa.table({"src": ["ada"], "dst": ["bob"], "from": ["a@x"], "to": ["b@x"]})})
    [row] = world.rows("Sent").values()
    assert row == {"src": "ada", "dst": "bob", "from": "a@x", "to": "b@x"}


FORMS: Final = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": lambda: TABLE.to_reader(),
    "pandas": lambda: pd.DataFrame({"name": ["ada", "bob"], "age": [36, None]}),
    "pandas arrow": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "dictionaries": lambda: [{"name": "ada", "age": 36}, {"name": "bob"}],
    "stream": lambda: _Speaks(TABLE),
    "chunks": lambda: pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
}


class _Speaks:
    """What polars, DuckDB and others look like from here."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())
def test_rows_in_memory(world, make):
    world.load({"Person": make()})
    assert ages(world) == {"ada": 36, "bob": None}


def test_rows_in_memory_are_refused_by_their_number(world):
    with pytest.raises(IntegrityError, match=r"Person:2: .*old"):
        world.load({"Person": [{"name": "ada"}, {"name": "bob", "age": "old"}]})


def test_the_frames_of_spark_are_known_without_spark(world):
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})()
    catalog = world.graph.schema.show().catalog
    inputs = resolve({"Person": frame}, catalog)
    assert isinstance(inputs.items[0], FrameInput)
    assert choose_engine(inputs, None).engine is EngineName.SPARK
    with pytest.raises(InvalidInputError, match="Spark"):
        choose_engine(inputs, "local")


def test_large_inputs_are_given_to_spark(world, monkeypatch):
    catalog = world.graph.schema.show().catalog
    inputs = resolve(world.file("data.jsonl", *PEOPLE), catalog)
    assert choose_engine(inputs, None).engine is EngineName.LOCAL
    monkeypatch.setattr(choice, "LOAD_LOCAL_BYTES_MAX", 10)
    assert choose_engine(inputs, None).engine is EngineName.SPARK
    assert "B of input" in choose_engine(inputs, None).why
    assert choose_engine(inputs, "local").engine is EngineName.LOCAL
    monkeypatch.setattr(choice, "LOAD_LOCAL_BYTES_MAX", 10**9)
    monkeypatch.setattr(choice, "LOAD_LOCAL_ROWS_MAX", 1)
    rows = resolve({"Person": TABLE}, catalog)
    assert "rows" in choose_engine(rows, None).why


def test_a_file_that_is_named_twice_is_refused(world):
    path = world.file("data.jsonl", *PEOPLE)
    with pytest.raises(InvalidInputError, match="twice"):
        world.load([path, str(world.folder / "*.jsonl")])


def test_rows_of_one_type_may_come_in_several_parts(world):
    nothing = world.file("x.jsonl")
    world.load([nothing, {"Person": TABLE.slice(0, 1)}, {"Person": TABLE.slice(1)}])
    assert world.ids("Person") == {"ada", "bob"}
    with pytest.raises(IntegrityError, match=r"Person#2:1: .*old"):
        world.load([nothing, {"Person": TABLE}, {"Person": [{"name": "cy", "age": "old"}]}])


# fmt: off
REFUSED: Final = {
    "a missing file":     ("persons.jsonl", NotFoundError, "persons.jsonl", "did you mean"),
    "an empty pattern":   ("*.nothing", NotFoundError, "nothing", "pattern"),
    "an unknown suffix":  ("notes.txt", InvalidInputError, "notes.txt", ".jsonl"),
    "no suffix":          ("notes", InvalidInputError, "notes", ".jsonl"),
    "no type's name":     ("persn.csv", TypeNotFoundError, "persn", "Person"),
    "an empty directory": ("empty", NotFoundError, "empty", ".jsonl"),
    "packed Parquet":     ("Person.parquet.gz", InvalidInputError, "Person.parquet.gz", ".parquet"),
    "another machine":    ("hdfs://lake/x.jsonl", InvalidInputError, "hdfs://", "Spark"),
}
# fmt: on


@pytest.mark.parametrize(("name", "error", "named", "advised"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_loaded_is_refused_by_name(world, name, error, named, advised):
    for each in ("person.jsonl", "notes.txt", "notes", "persn.csv", "Person.parquet.gz"):
        world.file(each, node("Person", name="x"))
    (world.folder / "empty").mkdir()
    source = name if "://" in name else str(world.folder / name)
    with pytest.raises(error, match=named.replace("*", ".")) as refusal:
        world.load(source, engine="local")
    assert advised in refusal.value.hint


def test_the_url_of_a_file_is_its_path(world):
    path = world.file("with space.jsonl", node("Person", name="x"))
    world.load(Path(path).as_uri())
    assert world.ids("Person") == {"x"}


# fmt: off
UNREADABLE: Final = {
    "no Parquet":     ("Person.parquet", b"PAR1 is not all there is to it", "name says", "whole"),
    "empty Parquet":  ("Person.parquet", b"", "is empty, so it is not a Parquet file", "again"),
    "an empty table": ("Person.csv", b"", "is empty", "first line"),
    "Latin-1":        ("Person.csv", b"name\n\xff\n", "line 2 of .*: its byte 1 is 0xff", "UTF-8"),
    "Latin-1 below":  ("Person.csv", b"name\n" + b"ada\n" * 9999 + b"\xe9\n", "line 10001 ", "8"),
    "UTF-16":         ("Person.csv", "name\nada\n".encode("utf-16"), "line 1 of .*0xff", "UTF-8"),
    "not packed":     ("data.jsonl.gz", b"this is not packed at all", "it is not gzip", "take .gz"),
    "not packed CSV": ("Person.csv.zst", b"name\nada\n", "it is not zstd", "take .zst"),
    "cut off":        ("data.jsonl.zst", CUT_OFF, "or not whole", "pack it again"),
    "semicolons":     ("Person.csv", b"name;age\nada;36\n", '"name;age"', "separated by commas"),
    "a foreign name": ("Person.csv", b"name,agee\nada,36\n", '"agee", and Person has', "age?"),
    "a foreign column": ("Person.csv", b"name,shoe\n", '"shoe"', "--ignore-unknown"),
    "a name twice":   ("Person.csv", b"name,name\n", 'two columns "name"', "rename"),
}
# fmt: on


@pytest.mark.parametrize(("name", "data", "said", "advised"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_is_not_what_its_name_says_is_refused_by_name(world, name, data, said, advised):
    path = world.folder / name
    path.write_bytes(data)
    with pytest.raises(InvalidInputError, match=said) as refusal:
        world.load(path)
    assert str(path) in refusal.value.message
    assert advised in refusal.value.hint


def test_what_may_not_be_looked_at_is_told_as_that(world, monkeypatch):
    def denied(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", denied)
    for source in ("locked/a.jsonl", {"Person": "locked/a.jsonl"}):
        with pytest.raises(StorageError, match=r"locked/a\.jsonl cannot be read: Perm") as refusal:
            world.load(source)
        assert refusal.value.code is ErrorCode.STORAGE_DENIED


@pytest.mark.parametrize("source", [7, b"bytes", TABLE, [TABLE], {"Person": 7}, [], {7: TABLE}])
def test_what_is_no_source_is_refused(world, source):
    with pytest.raises(InvalidInputError):
        world.load(source)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_column_that_no_property_takes_is_refused_by_name(world, form):
    table = TABLE.append_column("shoe", pa.array([43, 44]))
    path = world.folder / f"Person.{form}"
    (pcsv.write_csv if form == "csv" else pq.write_table)(table, path)
    with pytest.raises(InvalidInputError, match="shoe"):
        world.load(path)
    world.load(path, ignore_unknown=True)
    assert world.ids("Person") == {"ada", "bob"}


def test_blocks_of_any_size_give_the_same_rows(world, monkeypatch):
    lines = [node("Person", name=f"zoë {n}", age=n) for n in range(50)]
    lines += [edge("Knows", f"zoë {n}", "zoë 1", weight=0.5) for n in range(20)]
    path = world.file("data.jsonl", *lines)
    monkeypatch.setattr("omnigraph.load.readers.line_files.LOAD_BLOCK_BYTES", 77)
    world.load(path)
    assert ages(world) == {f"zoë {n}": n for n in range(50)}
    assert len(world.rows("Knows")) == 20
