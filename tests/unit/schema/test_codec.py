from __future__ import annotations

import json
from dataclasses import replace

import pytest

from omnigraph.errors import ErrorCode, FormatError, InvalidInputError
from omnigraph.schema import codec
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.parser import parse_schema

TEXT = """
interface Named { name: String @key }
node Person implements Named {
  born: Date? @default("2000-01-01") @range(born, "1900-01-01"..)
  status: enum(on, off) @default(on) @x_note("hi", level=2)
  vector: Vector(2)? @embed("name", model="m")
  photo: Blob?
  tags: [String]
  @check(name, "^[a-z]")
  @unique(born, status)
}
edge Knows: Person -> Person @card(0..3) { since: DateTime @default("2024-01-01T00:00:00Z") }
"""


def test_json_reads_back_as_the_same_catalog():
    catalog = parse_schema(TEXT)
    assert codec.decode(codec.encode(catalog)) == catalog


def test_layout_comments_and_order_do_not_change_the_digest():
    shuffled = """
    edge Knows : Person->Person @card ( 0 .. 3 )
      { since:DateTime // when
        @default("2024-01-01T02:00:00+02:00") }
    node Person implements Named {
      born: Date? @default("2000-01-01")
      status: enum(on, off) @x_note("hi", level=2) @default("on")
      vector: Vector(2)? @embed(name, model="m")
      photo: Blob? tags: [String]
      @unique(status, born)  @check(name, "^[a-z]") @range(born, date("1900-01-01")..)
      /* said again */ name: String @key
    }
    interface Named { name: String @key }
    """
    # The interface's property comes last in both, so that the columns are in the same order.
    assert codec.digest(parse_schema(shuffled)) == codec.digest(parse_schema(TEXT))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Date?", "Date"),
        ("0..3", "0..4"),
        ("on, off", "off, on"),
        ('"^[a-z]"', '"^[a-y]"'),
        ("tags: [String]", "tags: [String]?"),
        ("1900", "1901"),
        ("@key", "@unique"),
    ],
)
def test_any_change_of_meaning_changes_the_digest(old, new):
    first, second = (codec.digest(parse_schema(text)) for text in (TEXT, TEXT.replace(old, new, 1)))
    assert first != second


def test_the_digest_of_a_schema_never_changes_between_releases():
    # A graph stores this. If it moves, every graph looks as if its schema had been edited.
    assert codec.digest(Catalog()) == (
        "ad1fb413120d5efddcfd01ea4a7d589d91f8b1b346d7f41d70ca3c6334966ef6"
    )
    assert codec.digest(_without_notes(parse_schema(TEXT))) == (
        "b8a6b2cfd0213efd482a1607a22d07e47adbcb76a5ffb047ef0c4ee93a1f13cf"
    )
    assert codec.digest(parse_schema(TEXT)) == (
        "e9b4721f18d83be9995d852e30a563f833d402667b00a12e78e57df438e87042"
    )


def test_a_schema_of_a_release_without_notes_reads_back_as_it_was():
    stored = _without_notes(parse_schema(TEXT))
    assert codec.decode(codec.encode(stored)) == stored


def test_several_sources_read_back():
    catalog = parse_schema('node A { t: String u: String v: Vector(2) @embed(t, u, model="mock") }')
    assert codec.decode(codec.encode(catalog)) == catalog


def _without_notes(catalog: Catalog) -> Catalog:
    """The schema as it was stored before embedded vectors had companions."""
    nodes = (
        replace(node, properties=tuple(p for p in node.properties if p.name != "vector_embedded"))
        for node in catalog.node_types
    )
    return replace(catalog, node_types=tuple(nodes))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"format":1}',
        '{"format":1,"interfaces":[],"node_types":[{}],"edge_types":[]}',
        '{"format":1,"interfaces":[],"node_types":[{"name":"A","extra":1}],"edge_types":[]}',
        '{"format":1,"interfaces":[],"node_types":[{"name":"a"}],"edge_types":[]}',
        '{"format":1,"interfaces":[],"node_types":7,"edge_types":[]}',
        '{"format":1,"interfaces":[],"node_types":[{"name":"A","properties":'
        '[{"name":"a","type":"Strng"}]}],"edge_types":[]}',
        "[" * 100_000,
    ],
)
def test_what_is_not_a_schema_is_refused(text):
    with pytest.raises(InvalidInputError) as caught:
        codec.decode(text)
    assert caught.value.code is ErrorCode.INVALID_SCHEMA


def test_a_newer_format_is_named():
    whole = json.loads(codec.encode(Catalog())) | {"format": 2}
    with pytest.raises(FormatError) as caught:
        codec.decode(json.dumps(whole))
    assert caught.value.details == {"found": 2, "supported": 1}


def test_an_annotation_that_was_metadata_before_it_had_a_meaning_is_still_read():
    # A graph made by a release that did not know @length; it must open, and keep its digest.
    text = (
        '{"edge_types":[],"format":1,"interfaces":[],"node_types":[{"name":"A","properties":'
        '[{"annotations":[{"name":"length","value":5}],"name":"a","type":"String"}]}]}'
    )
    catalog = codec.decode(text)

    assert catalog.node_type("A").lengths == ()
    assert codec.encode(catalog) == text


def test_an_index_without_options_is_stored_as_before_there_were_any():
    plain = codec.encode(parse_schema("node A { p: String @index }"))
    assert '"indexes":["p"]' in plain
    assert codec.encode(parse_schema('node A { p: String @index(analyzer="english") }')) == plain


def test_options_of_indexes_read_back():
    catalog = parse_schema(
        'node A { p: String @index(analyzer="simple", positions=true) q: String @index '
        'v: Vector(2) @index(kind="ivf_flat") w: Vector(2) @index(metric="dot") }'
    )
    text = codec.encode(catalog)
    assert codec.decode(text) == catalog
    assert '{"options":{"metric":"dot"},"property":"w"}' in text


@pytest.mark.parametrize("options", ['{"analyser":"raw"}', '{"analyzer":"x"}', '{"metric":3}', "7"])
def test_options_that_no_index_has_are_refused(options):
    text = codec.encode(parse_schema('node A { p: String @index(analyzer="raw") }'))
    with pytest.raises(InvalidInputError):
        codec.decode(text.replace('{"analyzer":"raw"}', options))
