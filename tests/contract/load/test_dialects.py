"""CSV in any dialect, and columns of other names; each mistake is an error that names it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import InvalidInputError, InvalidParameterError, TypeNotFoundError
from omnigraph.integrity.violations import IntegrityError
from omnigraph.load.readers import csv_files
from tests.contract.load.loading import Loaded, loaded

SCHEMA: Final = """
node Person { name: String @key  age: I32?  note: String? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""


@pytest.fixture
def world(tmp_path: Path) -> Loaded:
    return loaded(tmp_path, SCHEMA)


def put(world: Loaded, name: str, data: bytes) -> Path:
    path = world.folder / name
    path.write_bytes(data)
    return path


ADA: Final = {"name": "Ada", "age": 36, "note": "x|y"}
BOB: Final = {"name": "Zoë", "age": None, "note": None}

# fmt: off
DIALECTS: Final = {
    "bars":        ("delimiter=|", "name|age|note\nAda|36|\"x|y\"\nZoë||\n"),
    "tabs":        ("delimiter=tab", "name\tage\tnote\nAda\t36\tx|y\nZoë\t\t\n"),
    "commas":      ("delimiter=,,null=NA", "name,age,note\nAda,36,x|y\nZoë,NA,NA\n"),
    "two nulls":   ("null=NA,-", "name,age,note\nAda,36,x|y\nZoë,-,NA\n"),
    "no header":   ("header=name,age,note", "Ada,36,x|y\nZoë,,\n"),
    "quotes":      ("quote=',delimiter=|", "name|age|note\nAda|36|'x|y'\nZoë||\n"),
    "escapes":     (r"escape=\,delimiter=;", "name;age;note\n\"A\\da\";36;x|y\nZoë;;\n"),
    "Latin-1":     ("encoding=latin-1", "name,age,note\nAda,36,x|y\nZoë,,\n"),
    "UTF-16":      ("encoding=utf-16", "name,age,note\r\nAda,36,x|y\r\nZoë,,\r\n"),
    "everything": ("delimiter=;,header=name,age,note,null=-,encoding=cp1252", "Ada;36;x|y\nZoë;-;"),
}
# fmt: on


@pytest.mark.parametrize(("options", "text"), DIALECTS.values(), ids=DIALECTS)
def test_every_dialect_gives_the_same_rows(world, options, text):
    encoding = options.partition("encoding=")[2] or "utf-8"
    put(world, "Person.csv", text.encode(encoding))
    world.load(world.folder / "Person.csv", csv=options)
    assert world.rows("Person") == {"Ada": ADA, "Zoë": BOB}


def test_options_by_name_and_those_of_one_type(world):
    put(world, "Person.csv.gz", gzip.compress(b"Ada|36\n"))
    put(world, "City.csv", b"name\nOslo\n")
    world.load(
        [world.folder / "Person.csv.gz", world.folder / "City.csv"],
        csv=["delimiter=|", "Person:header=name,age"],
    )
    assert (world.ids("Person"), world.ids("City")) == ({"Ada"}, {"Oslo"})
    put(world, "City.csv", b"'O;slo'\n")
    world.load(world.folder / "City.csv", csv={"delimiter": ";", "quote": "'", "header": ["name"]})
    assert world.ids("City") == {"Oslo", "O;slo"}


def test_a_quoted_null_is_a_text_and_a_row_of_nulls_is_not_lost(world):
    put(world, "Person.csv", b'name,note\nAda,"NA"\nBob,NA\n')
    world.load(world.folder / "Person.csv", csv="null=NA")
    notes = {name: row["note"] for name, row in world.rows("Person").items()}
    assert notes == {"Ada": "NA", "Bob": None}
    put(world, "Person.csv", b"name,note\nNA,NA\n")
    with pytest.raises(IntegrityError, match=r"Person\.csv:2: .*name"):
        world.load(world.folder / "Person.csv", csv="null=NA")


UTF16: Final = "name,age\nAda,1\n\n,\n\n\nBob,old".encode("utf-16")

# fmt: off
BLANK: Final = {
    "as written":         ("", b"name,age\nAda,1\n\n,\n\n\nBob,old\n\n", 4, 7),
    "by Windows":         ("", b"name,age\r\nAda,1\r\n\r\n,\r\n\r\n\r\nBob,old\r\n", 4, 7),
    "by old Macs":        ("", b"name,age\rAda,1\r\r,\r\r\rBob,old\r\r", 4, 7),
    "with other nulls":   ("null=-", b"name,age\nAda,1\n\n-,-\n\n\nBob,old\n", 4, 7),
    "beside quoted ones": ("", b'name,age,note\nAda,1,"a\n\nb"\n,,\n\nBob,old,\n', 5, 7),
    "beside bare ones":   ("", b"name,age,note\nAda,1,5\" wide\n\n,,\n\n\nBob,old,\n", 4, 7),
    "without a header":   ("header=name,age", b"\nAda,1\n\n,\n\n\nBob,old\n", 4, 7),
    "in UTF-16":          ("encoding=utf-16", UTF16, 4, 7),
    "below refused ones": ("", b'name,age\nAda,1\n1,2,"3\n\n"\n,\nBob,old\n', 6, 7),
    "after long names":   ("", b'name,age,"a\nb"\n\n,,\n\nBob,old,\n', 4, 6),
}
# fmt: on


@pytest.mark.parametrize("block_bytes", [1 << 20, 16])
@pytest.mark.parametrize(("options", "data", "empty", "old"), BLANK.values(), ids=BLANK)
def test_only_lines_without_anything_are_blank(
    world, monkeypatch, options, data, empty, old, block_bytes
):
    """A row of empty fields is a row, and the rows after it have their own lines."""
    monkeypatch.setattr("omnigraph.load.readers.csv_files._CSV_BLOCK_BYTES", block_bytes)
    put(world, "Person.csv", data)
    with pytest.raises(IntegrityError) as refusal:
        world.load(world.folder / "Person.csv", csv=options or None, ignore_unknown=True)
    places: dict[tuple[str, ...], list[str]] = {}
    for each in refusal.value.violations:
        places.setdefault(each.properties, []).append(Path(each.origin).name)
    assert places[("name",)] == [f"Person.csv:{empty}"]
    assert places[("age",)] == [f"Person.csv:{old}"]


def test_a_row_of_empty_fields_is_loaded_where_the_type_allows_it(world, tmp_path):
    world = loaded(tmp_path / "other", "node Note { text: String?  more: String? }")
    world.load(put(world, "Note.csv", b'text,more\na,b\n,\n\n"",""\n'))
    rows = [tuple(row.values()) for row in world.rows("Note").values()]
    assert sorted(rows, key=str) == [("", ""), ("a", "b"), (None, None)]
    world.load(put(world, "Note.csv", b'text\none\n\n""\n'), "overwrite")
    assert sorted(row["text"] for row in world.rows("Note").values()) == ["", "one"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_byte_order_mark_is_no_part_of_the_first_name(world, encoding):
    put(world, "Person.csv", '\ufeff"name",age\r\nZoë,7\r\n'.encode(encoding))
    world.load(world.folder / "Person.csv", csv=f"encoding={encoding}")
    assert world.rows("Person") == {"Zoë": {"name": "Zoë", "age": 7, "note": None}}
    put(world, "City.csv", "\ufeffOslo\n".encode(encoding))
    world.load(world.folder / "City.csv", csv=f"header=name,encoding={encoding}")
    assert world.ids("City") == {"Oslo"}


def test_lines_without_a_header_are_counted_from_the_first(world):
    put(world, "Person.csv", b"Ada,36\nBob,1,2\nCyd,old\n")
    with pytest.raises(IntegrityError) as refusal:
        world.load(world.folder / "Person.csv", csv="header=name,age")
    assert {Path(each.origin).name: each.message for each in refusal.value.violations} == {
        "Person.csv:2": "the line is refused: it has 3 columns, and the header has 2",
        "Person.csv:3": "Person: age: old is not of type I32 (write a whole number)",
    }
    put(world, "Person.csv", b"")
    assert world.load(world.folder / "Person.csv", csv="header=name,age").commit_id is None


def test_a_line_in_another_encoding_is_named(world, monkeypatch):
    monkeypatch.setattr("omnigraph.load.readers.csv_files._CSV_BLOCK_BYTES", 7)
    put(world, "Person.csv", "name,age\nAda,1\nZoë,2\n".encode("latin-1"))
    with pytest.raises(InvalidInputError, match=r"line 3 of .* is not ascii: its byte 3 is 0xeb"):
        world.load(world.folder / "Person.csv", csv="encoding=ascii")
    with pytest.raises(
        InvalidInputError, match=r"line 3 of .* is not UTF-8: its byte 3"
    ) as refusal:
        world.load(world.folder / "Person.csv")
    assert "--csv encoding=latin-1" in refusal.value.hint
    put(world, "Person.csv", "name\nAda\n".encode("utf-16")[:-1])
    with pytest.raises(InvalidInputError, match=r"line 2 of .* is not utf-16"):
        world.load(world.folder / "Person.csv", csv="encoding=utf-16")


# fmt: off
WRONG: Final = {
    "an unknown option":   ("delimeter=|", "no option 'delimeter'", "did you mean delimiter?"),
    "no option at all":    ("semicolons", "is not a list of CSV options", "--csv delimiter=|"),
    "two characters":      ("delimiter=||", "cannot be '||'", "--csv"),
    "a line break":        ("delimiter=\n", "cannot be '\\\\n'", "--csv"),
    "no codec":            ("encoding=latin-nine", "cannot be 'latin-nine'", "--csv"),
    "a codec of no text":  ("encoding=base64", "cannot be 'base64'", "--csv"),
    "a number":            (3, "cannot be a int", "--csv"),
    "numbers":             ([3], "cannot be a list", "--csv"),
    "no texts":            ({"header": 7}, "header of CSV cannot be '7'", "--csv"),
}
# fmt: on


@pytest.mark.parametrize(("options", "said", "advised"), WRONG.values(), ids=WRONG)
def test_a_wrong_option_is_named(world, options, said, advised):
    put(world, "Person.csv", b"name\nAda\n")
    with pytest.raises(InvalidParameterError, match=said.replace("|", r"\|")) as refusal:
        world.load(world.folder / "Person.csv", csv=options)
    assert advised in refusal.value.hint


def test_options_of_nothing_are_refused(world):
    with pytest.raises(TypeNotFoundError, match="Persn"):
        world.load(put(world, "Person.csv", b"name\n"), csv="Persn:header=name")
    with pytest.raises(InvalidParameterError, match="CSV options were given, but no CSV file"):
        world.load(world.file("data.jsonl", '{"type":"Person","data":{"name":"a"}}'), csv="null=NA")


def test_columns_of_other_names_are_mapped(world):
    put(world, "people.csv", b"full name,years,name\nAda,36,?\n")
    table = pa.table({"a": ["Ada"], "b": ["Ada"], "year": [7]})
    pq.write_table(table, world.folder / "knows.parquet")
    people, knows = world.folder / "people.csv", world.folder / "knows.parquet"
    world.load(
        {
            "Person": f"{people}:name=full name,age=years,note=name",
            "Knows": [f"{knows}:from=a,to=b,since=year"],
        }
    )
    assert world.rows("Person") == {"Ada": {"name": "Ada", "age": 36, "note": "?"}}
    assert [row["since"] for row in world.rows("Knows").values()] == [7]


# fmt: off
MISMAPPED: Final = {
    "a missing column":   ("name=full nme,age=years", 'no column "full nme"', "full name?"),
    "a missing property": ("nam=full name", "has no property nam", "did you mean name?"),
    "the other way":      ("full=name", "has no property full", "property=column"),
    "columns first":      ("name=age", 'no column "age"', "it has full name, years, note"),
    "twice":              ("name=full name,age=full name", "twice", "once"),
    "a name of another":  ("name=full name,age=years,note=years", "twice", "once"),
    "a name that is taken": ("name=note,age=years", 'column "full name"', "--ignore-unknown"),
}
# fmt: on


@pytest.mark.parametrize(("pairs", "said", "advised"), MISMAPPED.values(), ids=MISMAPPED)
def test_a_map_of_what_is_not_there_is_refused(world, pairs, said, advised):
    people = put(world, "people.csv", b"full name,years,note\nAda,36,?\n")
    with pytest.raises(InvalidInputError, match=said) as refusal:
        world.load({"Person": f"{people}:{pairs}"})
    assert "people.csv" in refusal.value.message
    assert advised in refusal.value.hint


def test_a_column_whose_name_is_given_away_is_dropped_only_if_unknown_ones_are(world):
    people = put(world, "people.csv", b"full name,name\nAda,A.\n")
    source = {"Person": f"{people}:name=full name"}
    with pytest.raises(InvalidInputError, match='has a column "name", and name is taken from'):
        world.load(source)
    world.load(source, ignore_unknown=True)
    assert world.ids("Person") == {"Ada"}
    lines = world.file("people.jsonl", '{"full":"Ada"}')
    with pytest.raises(InvalidInputError, match="name their properties themselves"):
        world.load({"Person": f"{lines}:name=full"})


def test_fields_of_ten_megabytes_are_loaded(tmp_path, monkeypatch):
    world = loaded(tmp_path, "node Page { number: I32 @key  text: String? }")
    long = "a\n" * (5 << 20)
    rows = [*(f"{n},x" for n in range(9)), f'9,"{long}"', "ten,x", "11,x,y", "12,x"]
    path = tmp_path / "pages.csv"
    path.write_text("number,text\n" + "".join(f"{row}\n" for row in rows))

    with pytest.raises(IntegrityError) as refusal:
        world.load({"Page": str(path)})
    lines = 11 + (5 << 20) + 1
    assert {each.origin for each in refusal.value.violations} == {
        f"{path}:{lines}", f"{path}:{lines + 1}",
    }  # fmt: skip
    path.write_text("number,text\n" + "".join(f"{row}\n" for row in (*rows[:10], rows[-1])))
    assert world.load({"Page": str(path)}).inserted == 11
    assert world.rows("Page")["9"]["text"] == long
    monkeypatch.setattr(csv_files, "_BLOCKS_BYTES", (1 << 10, 1 << 20))
    with pytest.raises(InvalidInputError, match=r"pages\.csv has a row of more than 1,048,576"):
        world.load({"Page": str(path)}, "merge")
