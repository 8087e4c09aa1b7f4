"""Shaping a batch at once and value by value have one outcome, whatever the batch holds."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.conversion import readings
from omnigraph.conversion.typed_columns import Notation
from omnigraph.errors import InvalidInputError
from omnigraph.integrity import convert
from omnigraph.integrity.deltas import POSITION
from omnigraph.load.positions import Origins, positions
from omnigraph.load.shaping import attempts, batches
from omnigraph.load.shaping.batches import ShapedBatch, Shaping
from omnigraph.load.shaping.columns import shape_columns
from omnigraph.load.shaping.lines import TEXT, shape_lines
from omnigraph.load.shaping.values import shape_values
from omnigraph.schema.parser import parse_schema

SCHEMA: Final = """
node Thing {
  name: String @key
  flag: Bool?
  small: I32?
  big: I64?
  usmall: U32?
  ubig: U64?
  thin: F32?
  wide: F64?
  day: Date?
  at: DateTime?
  kind: enum(red, green)?
  level: I32? @default(3)
  label: String? @default("plain")
  tags: [String]?
  days: [Date]?
  numbers: [F64]?
  vector: Vector(3)?
  data: Blob?
}
node Loose { note: String? }
node Pair { a: String  b: I32  c: Bool  @key(a, b, c) }
node Day { on: Date @key }
node Moment { at: DateTime @key  weight: F64? }
node Share { part: F64 @key }
edge Knows: Thing -> Thing { since: Date? }
edge Owns: Thing -> Thing { from: String?  weight: F32?  @key(src, dst) }
"""
CATALOG: Final = parse_schema(SCHEMA)
SEED: Final = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def shaping(**more: Any) -> Shaping:
    return Shaping(
        CATALOG, Origins.of_inputs(["first.jsonl", "people.jsonl"]).origin_of, SEED, **more
    )


def lines(texts: list[str]) -> pa.RecordBatch:
    return pa.record_batch(
        {POSITION: positions(1, 1, len(texts)), TEXT: pa.array(texts, pa.utf8())}
    )


def told(shaped: ShapedBatch) -> tuple[Any, ...]:
    rows = {str(key): (table.schema, repr(table.to_pylist())) for key, table in shaped.rows.items()}
    rejects = [
        (each.origin, repr(each.row), [str(fault) for fault in each.violations])
        for each in shaped.rejects
    ]
    counts = {str(breach): count for breach, count in shaped.report.counts.items()}
    violations = [repr(each) for each in shaped.report.violations]
    return dict(sorted(rows.items())), counts, violations, rejects


@pytest.fixture(autouse=True)
def _every_row_is_looked_for(monkeypatch):
    """Small batches are halved too."""
    monkeypatch.setattr(attempts, "LOAD_BISECTED_ROWS_MIN", 1)


NUMBERS: Final = st.one_of(
    st.integers(-5, 5),
    st.sampled_from([2**24, 2**24 + 1, 2**31 - 1, 2**31, 2**32, -(2**31), 2**53, 2**53 + 1]),
    st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**30]),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from(
        [0.1, -0.0, -2.2e-313, 3.0, 1e300, 1e39, 2.0**60, 16777217.0, 9007199254740993.0]
    ),
)
TEXTS: Final = st.one_of(
    st.text(max_size=4),
    st.sampled_from(["", "red", "5", "-7", "9223372036854775808", "null", "true", "} {", "a}b"]),
    st.sampled_from(["2024-02-29", "2023-02-29", "0000-01-01", "9999-12-31", "2024-1-1"]),
    st.sampled_from(
        [
            "2024-01-01T00:00:00Z",
            "2024-01-01 10:20:30.123456+05:30",
            "2024-01-01T10:20:30",
            "2024-01-01T10:20",
            "2024-01-01T24:00:00Z",
            "2024-01-01T10:20:60Z",
            "0001-01-01T00:00:00+01:00",
            "2024-01-01T10:20:30.1234567Z",
        ]
    ),
    st.sampled_from(["base64:", "base64:AQID", "base64:AQ", "base64:!!!!", "AQID"]),
)
ITEMS: Final = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
LISTS: Final = st.one_of(
    st.lists(ITEMS, max_size=4),
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
    st.lists(st.floats(-9, 9), min_size=3, max_size=3),
    st.lists(st.text(max_size=2), max_size=3),
)
VALUES: Final = st.one_of(ITEMS, LISTS, st.dictionaries(st.text(max_size=2), ITEMS, max_size=2))
RIGHT: Final[dict[str, st.SearchStrategy[Any]]] = {
    "flag": st.booleans(),
    "small": st.integers(-(2**31), 2**31 - 1),
    "big": st.integers(-(2**63), 2**63 - 1),
    "usmall": st.integers(0, 2**32 - 1),
    "ubig": st.integers(0, 2**64 - 1),
    "thin": st.floats(-1e3, 1e3),
    "wide": st.floats(-1e9, 1e9),
    "day": st.dates().map(str),
    "at": st.datetimes().map(lambda each: each.isoformat() + "Z"),
    "kind": st.sampled_from(["red", "green"]),
    "level": st.integers(0, 9),
    "label": st.text(max_size=3),
    "tags": st.lists(st.text(max_size=3), max_size=3),
    "days": st.lists(st.dates().map(str), max_size=3),
    "numbers": st.lists(st.floats(-1e9, 1e9), max_size=3),
    "vector": st.lists(st.floats(-9, 9), min_size=3, max_size=3),
    "data": st.binary(max_size=4).map(lambda each: "base64:" + _base64(each)),
}


def _base64(data: bytes) -> str:
    from base64 import b64encode

    return b64encode(data).decode()


@st.composite
def things(draw) -> dict[str, Any]:
    """A row of Thing that is mostly right."""
    row: dict[str, Any] = {"name": draw(st.text(max_size=3))}
    for name in draw(st.sets(st.sampled_from(sorted(RIGHT)), max_size=6)):
        row[name] = draw(st.one_of(RIGHT[name], RIGHT[name], RIGHT[name], st.none(), VALUES))
    if draw(st.integers(0, 9)) == 0:
        row[draw(st.sampled_from(["id", "nam", "src", "\ud800", ""]))] = draw(VALUES)
    return row


JUNK: Final = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "",
            "   ",
            "null",
            "[]",
            "3",
            '"x"',
            "{}",
            '{"type":"Thing","data":{"name":"a"}',
            '{"type":"Thing","data":{"name":"a"}} null',
            '{"type":"Thing","data":{"name":"a"}} null {}',
            '{"type":"Thing","data":{"name":"a"}}{"type":"Thing","data":{"name":"b"}}',
            '{"type":"Thing","type":"Loose","data":{"name":"a"}}',
            '{"type":"Thing","data":{"name":"a","name":"b"}}',
            '{"type":"Thing","data":{"name":"a","small":1e400}}',
            '{"type":"Thing","data":{"name":"a","wide":1e400}}',
            '{"type":"Thing","data":{"name":"a","wide":Inf}}',
            '{"type":"Thing","data":{"name":"a","\\u006cevel":null}}',
            '{"type":"Thing","data":{"name":"a","other":{"x":1,"x":2}}}',
            '{"type":"Thing","data":{"name":"a","tags":' + "[" * 5000 + "]" * 5000 + "}}",
            '{"type":"Thing","edge":"Knows","data":{"name":"a"}}',
            '{"type":"Thing","dta":{"name":"a"}}',
            '{"type":"Thing","data":[]}',
            '{"type":"Thing","data":null}',
            '{"type":"Thing","id":"a","data":{"name":"a"}}',
            '{"type":"Thing","id":"b","data":{"name":"a"}}',
            '{"type":"Thing","id":"a","data":{"name":"a","id":"a"}}',
            '{"type":"Knows"}',
            '{"edge":"Thing"}',
            '{"type":"Thng","data":{}}',
            '{"type":7,"data":{}}',
            '{"type" : "Thing" , "data" : { "name" : "spaced" } }',
            '{"data":{"name":"late"},"type":"Thing"}',
            '\ufeff{"type":"Thing","data":{"name":"marked"}}',
            '{"type":"Thing","data":{"name":"cr"}}\r',
            '{"type":"Thing","data":{"name":"a","tags":["} x"]}}',
            '{"type":"Loose"}',
            '{"type":"Loose","id":"mine"}',
            '{"type":"Loose","data":{"id":"mine","note":"x"}}',
            '{"type":"Loose","id":7}',
            '{"edge":"Knows","from":"a","to":"b"}',
            '{"edge":"Knows","from":"a"}',
            '{"edge":"Knows","from":1,"to":2}',
            '{"edge":"Knows","from":"a","to":"b","id":"e","data":{"since":"2024-01-01"}}',
            '{"edge":"Owns","from":"a","to":"b","data":{"from":"c"}}',
            '{"edge":"Owns","from":"a\\"","to":"b\\u0001"}',
            '{"edge":"Owns","from":null,"to":"b"}',
            '{"type":"Pair","data":{"a":"x","b":7,"c":true}}',
            '{"type":"Pair","data":{"a":"x","b":null,"c":true}}',
            '{"type":"Day","data":{"on":"2024-01-01"}}',
            '{"type":"Moment","data":{"at":"2024-01-01T10:20:30.5Z","weight":-0.0}}',
            '{"type":"Share","data":{"part":0.1}}',
            '{"type":"Share","data":{"part":NaN}}',
            '{"type":"Share","data":{"part":"NaN"}}',
            '{"type":"Moment","data":{"at":"2024-01-01T10:20:30Z","weight":"-Infinity"}}',
        ]
    ),
)
ENVELOPED: Final = st.one_of(
    things().map(lambda row: json.dumps({"type": "Thing", "data": row})),
    things().map(lambda row: json.dumps({"type": "Thing", "data": row}, separators=(",", ":"))),
    things().map(lambda row: json.dumps({"type": "Thing", "data": row}, ensure_ascii=False)),
    JUNK,
)


def _encodable(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text) and "\n" not in text


@given(st.lists(ENVELOPED.filter(_encodable), max_size=12), st.booleans(), st.booleans())
def test_lines_shaped_at_once_and_one_by_one_are_the_same(texts, ignores_unknown, keeps_rejects):
    how = shaping(ignores_unknown=ignores_unknown, keeps_rejects=keeps_rejects)
    assert told(shape_lines(how, lines(texts))) == told(shape_lines(how, lines(texts), exact=True))


@given(st.lists(things(), max_size=12), st.booleans())
def test_rows_of_a_file_named_by_its_type_are_the_same_too(rows, ignores_unknown):
    how = shaping(ignores_unknown=ignores_unknown)
    texts = [json.dumps(row) for row in rows]
    texts += ['{"type":"Thing","data":{"name":"enveloped"}}', '{"name":"last","type":"Thing"}']
    found = shape_lines(how, lines(texts), type_name="Thing")
    assert told(found) == told(shape_lines(how, lines(texts), type_name="Thing", exact=True))


@given(
    st.lists(
        st.fixed_dictionaries(
            {"weight": VALUES, "from": TEXTS},
            optional={"src": TEXTS, "dst": TEXTS, "to": TEXTS, "id": TEXTS},
        ),
        max_size=8,
    )
)
def test_edges_of_a_file_named_by_its_type_are_the_same_too(rows):
    texts = [json.dumps(row) for row in rows]
    found = shape_lines(shaping(), lines(texts), type_name="Owns")
    assert told(found) == told(shape_lines(shaping(), lines(texts), type_name="Owns", exact=True))


@given(st.data(), st.booleans())
def test_text_columns_shaped_at_once_and_one_by_one_are_the_same(data, keeps_rejects):
    count = data.draw(st.integers(1, 6))
    names = data.draw(st.sets(st.sampled_from(sorted(RIGHT)), min_size=1, max_size=4))
    cells = st.one_of(
        st.none(),
        TEXTS,
        NUMBERS.map(str),
        st.sampled_from(["NaN", "-Infinity", "Infinity", "1e3", "007", "+5", "0x1f", "1e400"]),
        LISTS.map(json.dumps),
    )
    columns = {
        name: pa.array([data.draw(cells | _cell(name)) for _ in range(count)], pa.utf8())
        for name in sorted(names)
    }
    columns["name"] = pa.array([f"n{place}" for place in range(count)])
    batch = pa.record_batch({POSITION: positions(0, 2, count), **columns})
    how = shaping(keeps_rejects=keeps_rejects)
    found = shape_columns(how, "Thing", batch, notation=Notation.TEXT)
    assert told(found) == told(
        shape_columns(how, "Thing", batch, notation=Notation.TEXT, exact=True)
    )


def _cell(name: str) -> st.SearchStrategy[str]:
    return RIGHT[name].map(lambda each: each if isinstance(each, str) else json.dumps(each))


ARRAYS: Final = [
    pa.array([1, None, 3]),
    pa.array([1, 2, 2**40]),
    pa.array([1, 2, 2**53 + 1]),
    pa.array([1, 2, 3], pa.uint8()),
    pa.array([1, 2, 2**63], pa.uint64()),
    pa.array([1.0, 2.0, None]),
    pa.array([1.5, -0.0, float("nan")]),
    pa.array([1e300, 1.0, 1e19]),
    pa.array([float("inf"), 2.0, 3.0]),
    pa.array([1.5, 2, 3], pa.float32()),
    pa.array([1, 2, 3], pa.float16()),
    pa.array([True, False, None]),
    pa.array(["a", "2024-01-01", None]),
    pa.array(["2024-01-01", "2024-01-02", None]),
    pa.array(["7", "8", "9"]),
    pa.array(["red", "green", None]).dictionary_encode(),
    pa.array(["red", "green", None], pa.large_utf8()),
    pa.array(["red", "green", None], pa.string_view()),
    pa.array([None, None, None]),
    pa.array([Decimal("1.50"), Decimal("2"), None]),
    pa.array([date(2024, 1, 1), None, date(1, 1, 1)]),
    pa.array([3_000_000, 1, 2], pa.int32()).view(pa.date32()),
    pa.array([date(2024, 1, 1), None, date(1, 1, 1)], pa.date64()),
    pa.array([datetime(2024, 1, 1, 1, 2, 3), None, datetime(1970, 1, 1)]),
    pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * 3, pa.timestamp("s", "Europe/Berlin")),
    pa.array([1, 1000, 2000], pa.timestamp("ns")),
    pa.array([1000, 2000, 3000], pa.timestamp("ns", "UTC")),
    pa.array([2**62, 1, 2], pa.timestamp("s")),
    pa.array([b"a", None, b"\xff"]),
    pa.array([b"ab", None, b"\xff\x00"], pa.binary(2)),
    pa.array(["base64:AQID", None, "base64:"]),
    pa.array([[1, 2, 3], None, [4, 5, 6]]),
    pa.array([[1.0, 2.0, 3.0], None, [4.0, 5.0, 6.0]], pa.list_(pa.float32(), 3)),
    pa.array([[1.0, 2.0, 3.0], [1.0], [4.0, None, 6.0]], pa.large_list(pa.float64())),
    pa.array([["a"], [], [None]]),
    pa.array([["2024-01-01"], None, []]),
    pa.array([[date(2024, 1, 1)], None, []]),
    pa.array([{"a": 1}, None, {"a": 2}]),
]


PYTHON: Final = st.one_of(
    VALUES,
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.timezones()),
    st.binary(max_size=3),
    st.decimals(allow_nan=False, places=2),
    st.tuples(st.floats(-9, 9), st.floats(-9, 9), st.floats(-9, 9)),
    st.sampled_from([np.float32(0.5), np.int64(7), np.array([1.0, 2.0, 3.0]), pd.Timestamp(7)]),
)


@given(st.data(), st.booleans(), st.booleans())
def test_python_values_shaped_at_once_and_one_by_one_are_the_same(data, ignores, keeps):
    names = data.draw(st.lists(st.sampled_from([*sorted(RIGHT), "other"]), max_size=4, unique=True))
    rows = []
    for number in range(data.draw(st.integers(0, 5))):
        row = {name: data.draw(RIGHT.get(name, PYTHON) | PYTHON) for name in names}
        rows.append({"name": f"n{number}", **row})
        if data.draw(st.integers(0, 9)) == 0:
            rows[-1].popitem()
    how = shaping(ignores_unknown=ignores, keeps_rejects=keeps)
    places = positions(0, 1, len(rows))
    found = shape_values(how, "Thing", rows, places)
    assert told(found) == told(shape_values(how, "Thing", rows, places, exact=True))


@pytest.mark.parametrize(
    "row",
    [{"from": "a", "to": "b"}, {"from": "c", "src": "a", "dst": "b"}, {"from": "a", "dst": "b"}],
)
def test_the_ends_of_an_edge_come_before_properties_that_are_called_like_them(row):
    found = shape_lines(shaping(), lines([json.dumps(row)]), type_name="Owns")
    exact = shape_lines(shaping(), lines([json.dumps(row)]), type_name="Owns", exact=True)
    assert told(found) == told(exact)
    columns = {name: pa.array([value]) for name, value in row.items()}
    batch = pa.record_batch({POSITION: positions(1, 1, 1), **columns})
    for is_exact in (False, True):
        told_too = shape_columns(shaping(), "Owns", batch, notation=Notation.TEXT, exact=is_exact)
        assert told(told_too) == told(found)


@pytest.mark.parametrize("name", sorted(RIGHT))
@pytest.mark.parametrize("values", ARRAYS, ids=lambda each: str(each.type))
def test_columns_of_any_arrow_type_are_the_same_both_ways(name, values):
    batch = pa.record_batch(
        {POSITION: positions(0, 1, 3), "name": pa.array(["a", "b", "c"]), name: values}
    )
    found = shape_columns(shaping(), "Thing", batch, notation=Notation.VALUES)
    exact = shape_columns(shaping(), "Thing", batch, notation=Notation.VALUES, exact=True)
    assert told(found) == told(exact)
    sliced = shape_columns(shaping(), "Thing", batch.slice(1), notation=Notation.VALUES)
    exact = shape_columns(shaping(), "Thing", batch.slice(1), notation=Notation.VALUES, exact=True)
    assert told(sliced) == told(exact)


def test_what_is_plainly_right_never_reaches_the_exact_converter(monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(batches, "convert_rows", refuse)
    texts = [
        json.dumps({"type": "Thing", "data": {"name": f"n{n}", "small": n, "day": "2024-01-01"}})
        if n % 2
        else json.dumps({"edge": "Knows", "from": "n1", "to": f"n{n}"})
        for n in range(100)
    ]
    found = shape_lines(shaping(), lines(texts))
    assert {str(key): len(rows) for key, rows in found.rows.items()} == {
        "node:Thing": 50,
        "edge:Knows": 50,
    }


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[Any]:
    """The arguments of the calls of a function."""
    calls: list[Any] = []
    function = getattr(module, name)

    def call(*arguments: Any, **more: Any) -> Any:
        calls.append(arguments)
        return function(*arguments, **more)

    monkeypatch.setattr(module, name, call)
    return calls


@pytest.mark.parametrize("text", ["517.0", "517.000", "-517.0", "2000000000000000000"])
def test_whole_numbers_of_csv_are_converted_by_column(monkeypatch, text):
    values = counted(monkeypatch, readings, "convert_value")
    names = pa.array([f"n{n}" for n in range(50)])
    cells = pa.array([text if n % 3 else None for n in range(50)], pa.utf8())
    batch = pa.record_batch({POSITION: positions(0, 2, 50), "name": names, "big": cells})
    [rows] = shape_columns(shaping(), "Thing", batch, notation=Notation.TEXT).rows.values()
    whole = int(text.partition(".")[0])
    assert rows["big"].to_pylist() == [whole if n % 3 else None for n in range(50)]
    assert values == []


def test_whole_numbers_of_json_are_converted_by_column(monkeypatch):
    rows = counted(monkeypatch, batches, "convert_rows")
    texts = [
        json.dumps({"name": f"n{n}", "small": float(n) if n % 3 else None, "ubig": 2**63 + n})
        for n in range(50)
    ]
    [found] = shape_lines(shaping(), lines(texts), type_name="Thing").rows.values()
    assert found["small"].to_pylist() == [n if n % 3 else None for n in range(50)]
    assert found["ubig"].to_pylist() == [2**63 + n for n in range(50)]
    assert rows == []


def test_a_cell_that_needs_care_costs_that_cell(monkeypatch):
    cells_read = counted(monkeypatch, readings, "convert_value")
    of_wrong_rows = counted(monkeypatch, convert, "convert_value")
    count = 5000
    cells = {
        "name": [f"n{n}" for n in range(count)],
        "small": ["1e2" if n % 100 == 0 else str(n) for n in range(count)],
        "wide": [str(n / 7) for n in range(count)],
        "flag": ["true"] * count,
    }
    cells["flag"][4321] = "yes"
    batch = pa.record_batch({POSITION: positions(0, 2, count), **cells})
    found = shape_columns(shaping(), "Thing", batch, notation=Notation.TEXT)
    [shaped] = found.rows.values()
    assert shaped["small"].to_pylist()[:102] == [100, *range(1, 100), 100, 101]
    assert [each.origin for each in found.report.violations] == ["first.jsonl:4323"]
    assert len(cells_read) == count // 100 + 1
    assert len(of_wrong_rows) == len(cells)


def test_a_wrong_row_among_many_is_found_with_its_line():
    texts = [json.dumps({"type": "Thing", "data": {"name": f"n{n}"}}) for n in range(5000)]
    texts[4321] = '{"type":"Thing","data":{"name":"x","small":"seven"}}'
    found = shape_lines(shaping(), lines(texts))
    [violation] = found.report.violations
    assert violation.origin == "people.jsonl:4322"
    assert len(found.rows[CATALOG.node_type("Thing").table_key]) == 4999


def test_an_absent_property_gets_its_default_and_a_null_one_stays_null():
    texts = [
        '{"type":"Thing","data":{"name":"a"}}',
        '{"type":"Thing","data":{"name":"b","level":null}}',
    ]
    rows = shape_lines(shaping(), lines(texts)).rows[CATALOG.node_type("Thing").table_key]
    assert rows["level"].to_pylist() == [3, None]


def test_minted_ids_are_the_same_however_often_a_row_is_shaped():
    texts = ['{"type":"Loose"}', '{"type":"Loose","data":{"note":"x"}}']
    key = CATALOG.node_type("Loose").table_key
    whole = shape_lines(shaping(), lines(texts)).rows[key]["id"].to_pylist()
    alone = shape_lines(shaping(), lines(texts).slice(1)).rows[key]["id"].to_pylist()
    assert whole[1:] == alone
    assert len(set(whole)) == 2


def test_a_column_that_no_property_takes_is_refused_by_name():
    batch = pa.record_batch({POSITION: positions(0, 1, 1), "nmae": pa.array(["a"])})
    with pytest.raises(InvalidInputError, match="nmae") as refusal:
        shape_columns(shaping(), "Thing", batch, notation=Notation.VALUES)
    assert "name" in refusal.value.hint
    ignoring = shape_columns(
        shaping(ignores_unknown=True), "Thing", batch, notation=Notation.VALUES
    )
    assert not ignoring.report.is_clean


def test_many_positions_make_many_ids_in_order():
    from omnigraph.load.positions import minted_id, minted_ids, position

    places = np.array([position(0, 1), position(3, 2), position(2**22, 2**39)])
    found = minted_ids(SEED, pa.array(places)).to_pylist()
    assert found == [minted_id(SEED, int(each)) for each in places]
    assert found == sorted(found)
