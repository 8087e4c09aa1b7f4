"""Export: every value comes out exactly, in one order, whole or not at all, on both engines."""

import csv
import gzip
import json
import math
from base64 import b64decode
from datetime import date, datetime
from errno import EACCES, ENOSPC, EROFS
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.choices import EngineName
from omnigraph.engine.local import sort
from omnigraph.errors import (
    AlreadyExistsError,
    ErrorCode,
    InvalidInputError,
    InvalidParameterError,
    NotFoundError,
    StorageError,
    TypeNotFoundError,
)
from omnigraph.export import files as formats
from omnigraph.failpoints import SimulatedCrash
from omnigraph.formats.export_folders import CONTENTS
from omnigraph.model.types import BlobType, ListType, Scalar
from tests.contract.export.graphs import EVERY, every_graph, exported, small_graph
from tests.contract.spark.builders import VALUES, every_type
from tests.support.graphs import add_rows

SMALL_LINES = [
    '{"type":"Person","data":{"name":"Ada","born":null,"note":null}}',
    '{"type":"Person","data":{"name":"Zoë","born":"1999-12-31","note":""}}',
    r'{"type":"Person","data":{"name":"a \"quoted\"\nname","born":null,"note":"x"}}',
    '{"edge":"Knows","id":"k1","from":"Zoë","to":"Ada","data":{"since":7}}',
]


@pytest.fixture
def every(tmp_path):
    return every_graph(tmp_path / "every.omni")


@pytest.fixture
def small(tmp_path):
    return small_graph(tmp_path / "small.omni")


def read_back(value, type_):
    """What a reader makes of a value in JSON."""
    if value is None:
        return None
    if isinstance(type_, ListType):
        return [read_back(each, type_.item) for each in value]
    if isinstance(type_, BlobType):
        return b64decode(value.removeprefix("base64:"), validate=True)
    if type_ is Scalar.DATE:
        return date.fromisoformat(value)
    if type_ is Scalar.DATETIME:
        return datetime.fromisoformat(value)
    if type_ in (Scalar.F32, Scalar.F64) and isinstance(value, str):
        assert value in ("NaN", "Infinity", "-Infinity")
        return float(value)
    return value


def no_json(word):
    message = f"{word} is no JSON"
    raise AssertionError(message)


def same(left, right) -> bool:
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and math.isnan(left):
        return math.isnan(right)
    if isinstance(left, float):
        return isinstance(right, float) and str(left) == str(right)
    return type(left) is type(right) and left == right


def test_every_value_reads_back_from_ndjson(every, tmp_path):
    exported(every, tmp_path / "out.jsonl")

    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line, parse_constant=no_json) for line in lines[:-1]]
    assert [row["id"] for row in rows] == [str(n) for n in range(len(rows))]
    for place, (type_, values) in enumerate(VALUES.items()):
        found = [read_back(row["data"][f"c{place}"], type_) for row in rows]
        stored = every_type().schema.field(f"c{place}").type
        if "float" in str(stored):
            # The digits are those of the F32; the nearest double is another number.
            found = pa.array(found, stored).to_pylist()
        expected = [*values, *[None] * (len(rows) - len(values))]
        assert all(map(same, expected, found)), f"{type_}: {expected} became {found}"


def test_equal_graphs_give_equal_bytes_whatever_order_they_were_written_in(tmp_path):
    there = small_graph(tmp_path / "there.omni")
    exported(there, tmp_path / "there.jsonl")

    assert (tmp_path / "there.jsonl").read_text(encoding="utf-8").splitlines() == SMALL_LINES


def test_an_edge_without_a_key_keeps_its_id_and_a_type_with_one_needs_none(small, tmp_path):
    exported(small, tmp_path / "out.jsonl", types=("Knows",))

    [line] = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["id"] == "k1"


def test_digits_that_would_become_another_number_on_the_way_are_avoided():
    near = pa.array([7.038531e-26, 0.1, None, -0.0, 16777216.0], pa.float32())

    texts = formats_of(near)

    read = pa.array([None if each is None else float(each) for each in texts], pa.float64()).cast(
        pa.float32(), safe=False
    )
    assert read.equals(near)
    assert texts[1:] == ["0.1", None, "-0.0", "16777216.0"]


def formats_of(values):
    from omnigraph.formats.lines import json_values

    return json_values(values, Scalar.F32).to_pylist()


@pytest.mark.parametrize(
    ("name", "unpack"),
    [
        ("out.jsonl", lambda data: data),
        ("out.jsonl.gz", gzip.decompress),
        ("out.jsonl.zst", lambda data: pa.input_stream(pa.py_buffer(data), "zstd").read()),
    ],
)
def test_a_file_is_packed_as_its_name_says(small, tmp_path, name, unpack):
    first = exported(small, tmp_path / name)
    exported(small, tmp_path / f"again-{name}")

    data = (tmp_path / name).read_bytes()
    assert unpack(data).decode().splitlines() == SMALL_LINES
    assert (tmp_path / f"again-{name}").read_bytes() == data
    assert (first.engine, first.files, dict(first.rows)) == (
        EngineName.LOCAL,
        (name,),
        {"Person": 3, "Thing": 0, "Knows": 1},
    )


def test_standard_output_gets_the_lines_and_nothing_else(small, capfdbinary):
    result = exported(small, "-")

    said, talk = capfdbinary.readouterr()
    assert said.decode().splitlines() == SMALL_LINES
    assert (talk, result.target, result.files) == (b"", "-", ())


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst"])
def test_only_a_file_that_an_export_made_is_replaced(small, tmp_path, name):
    target = tmp_path / name
    for mine in (
        b"mine",
        b"node Person { name: String }\n",
        b'{"type": "Person"}\n',
        b"\x1f\x8b no",
    ):
        target.write_bytes(mine)
        for replaces in (False, True):
            with pytest.raises(AlreadyExistsError, match="exists, and is not an earlier export"):
                exported(small, target, replaces=replaces)
        assert target.read_bytes() == mine

    target.write_bytes(b"")
    for types in (("Thing",), None, ("Knows",), ("Person",)):
        exported(small, target, types=types, replaces=True)
        before = target.read_bytes()
        with pytest.raises(AlreadyExistsError, match="--replace"):
            exported(small, target)
        assert target.read_bytes() == before


def test_an_empty_directory_is_free(small, tmp_path):
    for replaces in (False, True):
        target = tmp_path / f"out{replaces}"
        target.mkdir()
        exported(small, target, format="csv", replaces=replaces)
        assert (target / "Person.csv").exists()


def test_only_a_directory_that_an_export_made_is_replaced(small, tmp_path):
    target = tmp_path / "out"
    exported(small, target, format="csv")
    exported(small, target, format="parquet", replaces=True)
    assert sorted(each.name for each in target.iterdir()) == [
        "Knows.parquet",
        "Person.parquet",
        "Thing.parquet",
        CONTENTS,
    ]

    (target / "mine.csv").write_text("mine")
    with pytest.raises(AlreadyExistsError):
        exported(small, target, format="csv", replaces=True)
    assert (target / "mine.csv").read_text() == "mine"


def test_a_directory_that_a_killed_export_was_to_replace_is_named_and_restored(
    small, tmp_path, monkeypatch, caplog
):
    target = tmp_path / "out.dir"
    exported(small, target, format="csv")
    rename = Path.rename

    def crash(self, to):
        if Path(to) == target:
            raise SimulatedCrash
        return rename(self, to)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", crash)
        with pytest.raises(SimulatedCrash):
            exported(small, target, format="parquet", replaces=True)
    [hidden] = [path for path in tmp_path.iterdir() if path.name.startswith(".out.dir.")]
    assert not target.exists()
    with pytest.raises(NotFoundError, match="an export that was to replace it was killed") as said:
        small.load(str(target))
    assert str(hidden) in said.value.hint

    with pytest.raises(AlreadyExistsError, match="exists"):
        exported(small, target, format="csv")
    assert "is the earlier export again" in caplog.text
    assert (target / "Person.csv").exists()
    assert not hidden.exists()
    exported(small, target, format="parquet", replaces=True)
    assert (target / "Person.parquet").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".out.dir")]


def test_a_file_url_is_a_path(small, tmp_path):
    for number, prefix in enumerate(("file://", "file:", "file://localhost")):
        target = tmp_path / f"out {number}.jsonl"
        url = f"{prefix}{tmp_path}/out%20{number}.jsonl"
        assert exported(small, url).target == str(target)
        assert target.read_text().splitlines() == SMALL_LINES


@pytest.mark.parametrize(
    ("target", "said", "advised"),
    [
        ("hdfs://namenode:8020/out", "cannot go to hdfs://", "s3://, s3a://, gs://, abfss://"),
        ("S3://lake/out/there", "cannot go to S3://", "s3://"),
        ("https://host/out.jsonl", "cannot go to https://", "copy it from there"),
        ("dbfs://out.jsonl", "cannot go to dbfs://", "a directory of this machine"),
        ("file://host/out.jsonl", "does not name a file of this machine", "file:///directory/name"),
    ],
)
def test_a_store_that_exports_are_not_written_to_is_named(
    small, tmp_path, monkeypatch, target, said, advised
):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InvalidInputError, match=said) as refusal:
        exported(small, target, engine="local")
    assert refusal.value.code is ErrorCode.INVALID_URI
    assert target in refusal.value.message
    assert advised in refusal.value.hint
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("number", "said", "code"),
    [
        (ENOSPC, "No space left on device", ErrorCode.STORAGE),
        (EACCES, "Permission denied", ErrorCode.STORAGE_DENIED),
        (EROFS, "Read-only file system", ErrorCode.STORAGE_DENIED),
    ],
)
def test_a_failed_export_leaves_nothing(small, tmp_path, monkeypatch, number, said, code):
    target = tmp_path / "out.jsonl"
    exported(small, target, types=("Person",))
    before, mine = sorted(tmp_path.iterdir()), target.read_bytes()

    def fail(*_):
        raise OSError(number, "as Arrow words it, with its own name of the file")

    monkeypatch.setattr(formats, "envelope_lines", fail)
    with pytest.raises(StorageError) as failure:
        exported(small, target, replaces=True)

    assert failure.value.message == f"writing {target} failed: {said}"
    assert failure.value.code is code

    assert (sorted(tmp_path.iterdir()), target.read_bytes()) == (before, mine)


@pytest.mark.parametrize(
    ("order", "error"),
    [
        ({"target": "out.csv"}, InvalidInputError),
        ({"target": "out", "format": "xml"}, InvalidParameterError),
        ({"target": "-", "format": "csv"}, InvalidInputError),
        ({"target": "-", "engine": "spark"}, InvalidInputError),
        ({"target": "out.jsonl", "engine": "abacus"}, InvalidParameterError),
        ({"target": "out.jsonl", "types": ("Persn",)}, TypeNotFoundError),
        ({"target": "none/out.jsonl"}, InvalidInputError),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_written(
    small, tmp_path, monkeypatch, order, error
):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())

    with pytest.raises(error):
        exported(small, **order)

    assert sorted(tmp_path.iterdir()) == before


def test_every_value_reads_back_from_parquet(every, tmp_path):
    exported(every, tmp_path / "out", format="parquet")

    found = pq.read_table(tmp_path / "out" / "Every.parquet")
    assert found.schema.equals(formats.file_schema(EVERY))
    for row in found.to_pylist():
        for place, values in enumerate(VALUES.values()):
            number = int(row["id"])
            expected = values[number] if number < len(values) else None
            assert same(expected, row[f"c{place}"])


def test_csv_tells_an_empty_text_from_a_null(small, tmp_path):
    exported(small, tmp_path / "out", format="csv")

    people = (tmp_path / "out" / "Person.csv").read_text(encoding="utf-8")
    assert people.startswith(
        '"id","name","born","note"\n"Ada","Ada",,\n"Zoë","Zoë",1999-12-31,""\n'
    )
    [_, edge] = csv.reader((tmp_path / "out" / "Knows.csv").read_text().splitlines())
    assert edge == ["k1", "Zoë", "Ada", "7"]
    header = (tmp_path / "out" / "Knows.csv").read_text(encoding="utf-8").partition("\n")[0]
    assert header == '"id","from","to","since"'


def test_a_branch_and_the_past_are_exported_as_they_are(small, tmp_path):
    before = small.snapshot().head.commit_id
    draft = small.branches.create("draft")
    draft.mutate('query q() { insert Person { name: "Bo" } }')
    add_rows(small, {"Thing": [{"label": "main only"}]})

    for name, graph in {
        "main": small,
        "draft": draft,
        "past": small.at(commit=before),
    }.items():
        exported(graph, tmp_path / name)

    past, main, draft_lines = (
        (tmp_path / name).read_text(encoding="utf-8").splitlines()
        for name in ("past", "main", "draft")
    )
    assert past == SMALL_LINES
    assert len(main) == 5
    assert set(draft_lines) - set(past) == {
        '{"type":"Person","data":{"name":"Bo","born":null,"note":"none"}}'
    }


@pytest.mark.parametrize("batch_rows", [1, 3])
def test_rows_that_wait_on_disk_come_in_the_same_order(every, tmp_path, monkeypatch, batch_rows):
    graph = small_graph(tmp_path / "g.omni")
    add_rows(graph, {"Thing": [{"label": str(n)} for n in range(5000)]})
    exported(graph, tmp_path / "memory.jsonl")
    exported(every, tmp_path / "every-memory.jsonl")

    monkeypatch.setattr(sort, "SORTED_IN_MEMORY_BYTES_MAX", -1)
    monkeypatch.setattr(sort, "SORT_BATCH_ROWS_MAX", batch_rows)
    exported(graph, tmp_path / "disk.jsonl")
    exported(every, tmp_path / "every-disk.jsonl")

    for name in ("", "every-"):
        memory, disk = (tmp_path / f"{name}{each}.jsonl" for each in ("memory", "disk"))
        assert memory.read_bytes() == disk.read_bytes()


def test_every_type_survives_the_disk(tmp_path, monkeypatch):
    # Blobs are never sorted; all other types are.
    graph = every_graph(tmp_path / "g.omni")
    table = graph._store.tables
    pin = next(iter(graph.snapshot().pins.values()))
    opened = table.open(pin.location, ref=pin.ref, version=pin.version)
    plain = [n for n, type_ in enumerate(VALUES) if "Blob" not in str(type_)]
    schema = pa.schema([f for f in _schema() if f.name in {"id", *(f"c{n}" for n in plain)}])

    memory = pa.Table.from_batches(sort.sorted_batches(opened, schema, by="id"))
    monkeypatch.setattr(sort, "SORTED_IN_MEMORY_BYTES_MAX", -1)
    disk = pa.Table.from_batches(sort.sorted_batches(opened, schema, by="id"))

    assert disk.schema.equals(memory.schema)
    assert str(disk.to_pylist()) == str(memory.to_pylist())


def _schema():
    from omnigraph.schema.arrow import table_schema

    return table_schema(EVERY)


def test_progress_is_told_by_type(small, tmp_path):
    told = []
    exported(small, tmp_path / "out.jsonl", progress=lambda *each: told.append(each))

    assert told == [("Person", 3, 3), ("Knows", 1, 1)]
